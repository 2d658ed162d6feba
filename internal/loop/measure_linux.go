package loop

import (
	"sync/atomic"
	"time"

	"golang.org/x/sys/unix"
)

// turnMeasure is read by event loops when they are made.
var turnMeasure atomic.Pointer[func(cpu time.Duration)]

// MeasureTurns calls report with the CPU time of each turn of the event loops that are made
// until stop is called: for tests that bound it. Loops that are measured keep their thread.
// report may be called by several loops at once.
func MeasureTurns(report func(cpu time.Duration)) (stop func()) {
	turnMeasure.Store(&report)
	return func() { turnMeasure.Store(nil) }
}

// threadCPU returns the CPU time that the thread has used.
func threadCPU() time.Duration {
	var t unix.Timespec
	_ = unix.ClockGettime(unix.CLOCK_THREAD_CPUTIME_ID, &t) // every thread has one
	return time.Duration(t.Nano())
}

// measured reports a turn that began at the given CPU time.
func (l *eventLoop) measured(start time.Duration) { l.measure(threadCPU() - start) }
