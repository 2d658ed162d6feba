package governance

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream"
)

// judge notes what a call that failed says about its member. An answer is no failure, and neither is a refusal, nor
// what the caller or a bound of this process has ended.
func (p *Pool) judge(m *member, err error) {
	switch slipstream.OutcomeOf(err) {
	case slipstream.Executed:
		m.failures.Store(0)
	case slipstream.NotSent, slipstream.MaybeExecuted:
		if !isInvalid(err) && !errors.Is(err, context.Canceled) {
			p.failed(m, err)
		}
	}
}

// failed notes that a call or an attempt to connect of a member has failed, and ejects it if there were enough in a row.
func (p *Pool) failed(m *member, cause error) {
	if n := m.failures.Add(1); p.config.Failures < 0 || n < int64(p.config.Failures) {
		return
	}
	now := time.Now()
	p.set.Change(func(c *change) {
		if c.Closed() || !m.ejected.IsZero() || p.ejected >= p.mostEjected(c) || !slices.Contains(c.Members(), m) {
			return
		}
		if now.Sub(m.restored) > p.config.MaxEjectionTime {
			m.series = 0
		}
		d := p.config.EjectionTime
		for range m.series {
			d = min(2*d, p.config.MaxEjectionTime)
			if d == p.config.MaxEjectionTime {
				break
			}
		}
		m.series++
		m.ejected = now.Add(d)
		p.ejected++
		p.ejections++
		m.timer = time.AfterFunc(d, func() { p.restore(m) }) // stopped by forget
		c.Emit(slipstream.Event{Kind: slipstream.Ejected, Addr: m.addr, At: now, Err: cause, Backoff: d})
		c.Rebuild()
	})
}

// mostEjected returns how many members may be ejected at a time. The caller holds the lock of the set.
func (p *Pool) mostEjected(c *change) int {
	return int(p.config.MaxEjected * float64(len(c.Members())))
}

// restore ends the ejection of a member. It runs in a timer.
func (p *Pool) restore(m *member) {
	p.set.Change(func(c *change) {
		if !c.Closed() && slices.Contains(c.Members(), m) && !m.ejected.IsZero() && !time.Now().Before(m.ejected) {
			p.restoreNow(c, m)
		}
	})
}

// restoreNow ends the ejection of a member. One more failure begins another one. The caller holds the lock of the set.
func (p *Pool) restoreNow(c *change, m *member) {
	now := time.Now()
	p.forget(m)
	m.restored = now
	m.failures.Store(int64(p.config.Failures - 1))
	m.warm()
	c.Emit(slipstream.Event{Kind: slipstream.Restored, Addr: m.addr, At: now})
	c.Rebuild()
}

// forget ends the ejection of a member, if there is one, without an event. The caller holds the lock of the set.
func (p *Pool) forget(m *member) {
	if m.ejected.IsZero() {
		return
	}
	m.ejected = time.Time{}
	m.timer.Stop()
	p.ejected--
}

// keepBound restores members if there are so few now that too many are ejected: those whose time is over first. The
// caller holds the lock of the set.
func (p *Pool) keepBound(c *change) {
	for p.ejected > p.mostEjected(c) {
		var first *member
		for _, m := range c.Members() {
			if !m.ejected.IsZero() && (first == nil || m.ejected.Before(first.ejected)) {
				first = m
			}
		}
		p.restoreNow(c, first)
	}
}
