package gateway

import (
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bootTime is the clock of the freshness promise: unlike Go's monotonic clock it
// goes on while the machine is suspended (clock_gettime(2), CLOCK_BOOTTIME).
// The raw call saves the scheduler's bookkeeping for a call that never blocks:
// see BenchmarkBootTime.
func bootTime() time.Duration {
	var ts unix.Timespec
	// It cannot fail: the clock exists since Linux 2.6.39, and ts is ours.
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}
