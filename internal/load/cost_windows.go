package load

import (
	"syscall"
	"time"
)

// ownCPU returns the user and kernel time of this process.
func ownCPU() (time.Duration, error) {
	self, err := syscall.GetCurrentProcess()
	if err != nil {
		return 0, err
	}
	var created, exited, kernel, user syscall.Filetime
	if err := syscall.GetProcessTimes(self, &created, &exited, &kernel, &user); err != nil {
		return 0, err
	}
	return filetime(kernel) + filetime(user), nil
}

// filetime converts a duration in units of 100 ns.
func filetime(f syscall.Filetime) time.Duration {
	return time.Duration(int64(f.HighDateTime)<<32|int64(f.LowDateTime)) * 100
}
