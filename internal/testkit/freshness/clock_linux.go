package freshness

import "golang.org/x/sys/unix"

// Now returns the nanoseconds since the machine was started, including suspended time
// (CLOCK_BOOTTIME). All processes of a machine see the same clock.
func Now() int64 {
	var ts unix.Timespec
	if err := unix.ClockGettime(unix.CLOCK_BOOTTIME, &ts); err != nil {
		return 0 // the call fails only if the kernel does not have the clock
	}
	return ts.Nano()
}
