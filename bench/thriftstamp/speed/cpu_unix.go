//go:build unix

package speed

import (
	"syscall"
	"time"
)

// cpuTime returns the CPU time of this process, which other programs on the machine do not affect.
func cpuTime() time.Duration {
	var r syscall.Rusage
	if err := syscall.Getrusage(syscall.RUSAGE_SELF, &r); err != nil {
		panic(err)
	}
	return time.Duration(r.Utime.Nano() + r.Stime.Nano())
}
