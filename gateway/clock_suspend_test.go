//go:build linux

package gateway

import (
	"sync"
	"testing"
	"time"
)

// machine is a machine with its own clocks, which can be suspended.
type machine struct {
	mono, wall, boot time.Duration
	asked            int // how often the kernel was queried
}

func (m *machine) clock() *bootClock {
	c := &bootClock{kernel: func() time.Duration { m.asked++; return m.boot }, mono: func() time.Duration { return m.mono }}
	c.asked.Store(int64(-clockAskEvery))
	return c
}

func (m *machine) run(d time.Duration) { m.mono, m.wall, m.boot = m.mono+d, m.wall+d, m.boot+d }

func (m *machine) suspend(d time.Duration) { m.wall, m.boot = m.wall+d, m.boot+d }

// TestBootTimeCountsSuspensions: the clock follows the kernel's, whatever the other clocks
// do.
func TestBootTimeCountsSuspensions(t *testing.T) {
	m := &machine{boot: 5 * time.Hour}
	c := m.clock()
	check := func(after string) {
		t.Helper()
		if got := c.at(m.mono, m.wall-m.mono); got != m.boot {
			t.Fatalf("after %s the clock says %v, want %v", after, got, m.boot)
		}
	}
	check("the start")
	for _, d := range []time.Duration{2 * time.Millisecond, time.Second, time.Hour} {
		m.run(time.Millisecond)
		check("a millisecond")
		m.suspend(d)
		check("a suspension")
		m.run(time.Minute)
		check("a minute")
		m.wall -= 10 * time.Second // an administrator sets the wall clock
		check("a step back of the wall clock")
		m.wall += d
		check("a step of the wall clock")
		// The two together, which leave the wall clock where it was.
		m.suspend(d)
		m.wall -= d
		m.run(clockAskEvery)
		check("a suspension that the wall clock does not show")
	}
}

// TestBootTimeAsksSeldom: while nothing happens to the machine, the kernel is queried 100 times a
// second.
func TestBootTimeAsksSeldom(t *testing.T) {
	m := &machine{}
	c := m.clock()
	m.asked = 0
	for range 100_000 {
		m.run(10 * time.Microsecond)
		c.at(m.mono, m.wall-m.mono+50*time.Microsecond)
	}
	if m.asked == 0 || m.asked > 1100 {
		t.Errorf("in a second the kernel was queried %d times, want 1,000 at most: 10 for each reading", m.asked)
	}
}

// TestBootTimeNeverGoesBack: the kernel's clock cannot be read at the same instant as the other one.
func TestBootTimeNeverGoesBack(t *testing.T) {
	m := &machine{boot: time.Hour}
	c := m.clock()
	last := time.Duration(0)
	for i := range 1000 {
		m.run(clockAskEvery)
		for j := range 3 { // at one instant, at which the wall clock makes it query again
			early := time.Duration((i+3*j)%7) * 100 * time.Microsecond
			m.boot -= early
			got := c.at(m.mono, m.wall-m.mono+time.Duration(j)*2*clockShift)
			m.boot += early
			if got < last {
				t.Fatalf("reading %d is %v, after %v", i, got, last)
			}
			last = got
		}
	}
	var all sync.WaitGroup
	for range 4 {
		all.Go(func() {
			last := bootTime()
			for range 50_000 {
				now := bootTime()
				if now < last {
					t.Errorf("the clock went back from %v to %v", last, now)
					return
				}
				last = now
			}
		})
	}
	all.Wait()
	if diff := (bootTime() - askKernel()).Abs(); diff > time.Second {
		t.Errorf("the clock differs from the kernel's by %v", diff)
	}
}
