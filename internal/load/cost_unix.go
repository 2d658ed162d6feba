//go:build unix

package load

import (
	"syscall"
	"time"
)

// ownCPU returns the user and system time of this process, including ended threads.
func ownCPU() (time.Duration, error) {
	var u syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &u); err != nil {
		return 0, err
	}
	return time.Duration(u.Utime.Nano() + u.Stime.Nano()), nil
}
