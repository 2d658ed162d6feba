package gateway

import (
	"runtime"
	"sync/atomic"
	"syscall"
	"time"
	"unsafe"

	"golang.org/x/sys/unix"
)

// bootTime is the clock of the freshness promise: unlike Go's monotonic clock it
// continues while the machine is suspended (clock_gettime(2), CLOCK_BOOTTIME).
func bootTime() time.Duration { return processClock.now() }

// askKernel reads CLOCK_BOOTTIME. The raw call avoids the scheduler's bookkeeping for a call that
// never blocks.
func askKernel() time.Duration {
	var ts unix.Timespec
	// It cannot fail: the clock exists since Linux 2.6.39, and ts is ours.
	_, _, _ = syscall.RawSyscall(unix.SYS_CLOCK_GETTIME, unix.CLOCK_BOOTTIME, uintptr(unsafe.Pointer(&ts)), 0)
	return time.Duration(ts.Nano())
}

var processClock = newBootClock()

// bootClock is CLOCK_BOOTTIME, mostly without a system call: a loop would make one for every two or
// three requests. It is Go's monotonic clock, which package time reads without one, and an offset,
// which changes only when the machine was suspended. A suspension moves the wall clock relative to the
// monotonic clock by as much as the boot time, so the kernel is queried again when the two have moved
// relative to each other, for any reason, and every 10 ms in any case.
type bootClock struct {
	// Immutable after newBootClock.
	start  time.Time
	kernel func() time.Duration
	mono   func() time.Duration // since start

	// Atomics. Written by the reader that has made seq odd, read by all: values that are read
	// while seq is even and does not change belong together.
	seq    atomic.Uint64
	asked  atomic.Int64 // when the kernel was queried, on the monotonic clock
	shift  atomic.Int64 // by how much the wall clock had moved relative to it then
	offset atomic.Int64 // the boot time minus the monotonic clock
}

const (
	// clockAskEvery is the maximum age of an offset.
	clockAskEvery = 10 * time.Millisecond
	// clockShift is by how much the wall clock may move relative to the monotonic clock. It
	// is usually more than the time between the two readings.
	clockShift = 100 * time.Microsecond
	// clockStep is the smallest change of the offset that counts as one. The kernel does not
	// return both clocks for the same instant, and the boot time must not go backwards.
	clockStep = time.Millisecond
	// clockGap is the time within which both clocks should be read.
	clockGap = 20 * time.Microsecond
)

func newBootClock() *bootClock {
	c := &bootClock{start: time.Now(), kernel: askKernel}
	c.mono = func() time.Duration { return time.Since(c.start) }
	offset := c.measure()
	c.offset.Store(int64(offset))
	c.asked.Store(int64(-clockAskEvery))
	return c
}

// now returns the boot time.
func (c *bootClock) now() time.Duration {
	t := time.Now()
	mono := t.Sub(c.start)
	return c.at(mono, time.Duration(t.UnixNano()-c.start.UnixNano())-mono)
}

// at returns the boot time of a moment of the monotonic clock that has just been read. shift is by how
// much the wall clock has moved relative to it since the start.
func (c *bootClock) at(mono, shift time.Duration) time.Duration {
	seq := c.seq.Load()
	asked, before, offset := time.Duration(c.asked.Load()), time.Duration(c.shift.Load()), time.Duration(c.offset.Load())
	if seq%2 == 0 && c.seq.Load() == seq && mono-asked < clockAskEvery && (shift-before).Abs() < clockShift {
		return mono + offset
	}
	return c.ask(mono, shift)
}

// ask is at with a reading of the kernel's clock.
func (c *bootClock) ask(mono, shift time.Duration) time.Duration {
	offset := c.measure()
	for {
		seq := c.seq.Load()
		if seq%2 != 0 || !c.seq.CompareAndSwap(seq, seq+1) {
			runtime.Gosched() // another reader is writing three words
			continue
		}
		if old := time.Duration(c.offset.Load()); offset < old+clockStep {
			offset = old
		}
		c.offset.Store(int64(offset))
		c.shift.Store(int64(shift))
		c.asked.Store(int64(mono))
		c.seq.Store(seq + 2)
		return mono + offset
	}
}

// measure returns the offset. Of several readings it uses the one that took the shortest time.
func (c *bootClock) measure() (offset time.Duration) {
	best := time.Duration(-1)
	for range 10 {
		before := c.mono()
		boot := c.kernel()
		after := c.mono()
		if gap := after - before; best < 0 || gap < best {
			best, offset = gap, boot-after
		}
		if best < clockGap {
			break
		}
	}
	return offset
}
