package loop

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// turnMeasure is read by event loops when they are created.
var turnMeasure atomic.Pointer[func(cpu time.Duration)]

// MeasureTurns calls report with the CPU time of each turn of the event loops that are created
// before stop is called. It is for tests that bound that time. Measured loops are locked to their
// threads. report must be safe for concurrent use.
func MeasureTurns(report func(cpu time.Duration)) (stop func()) {
	turnMeasure.Store(&report)
	return func() { turnMeasure.Store(nil) }
}

// threadCPU returns the CPU time that the thread has used.
func threadCPU() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // every thread has this clock
	return time.Duration(t.Nano())
}

// measured reports a turn that began at the given CPU time.
func (l *eventLoop) measured(start time.Duration) { l.measure(threadCPU() - start) }
