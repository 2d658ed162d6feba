package governance

import (
	"context"
	"errors"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream"
)

// judge updates the failures of a member after a call that returned an error. An answer is not a failure, nor is a
// refusal, nor a call ended by the caller or by a limit of this process.
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

// failed records that a call of a member, or an attempt to connect to it, failed. It ejects the member after
// PoolConfig.Failures consecutive failures.
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
		m.timer = time.AfterFunc(d, func() { p.restore(m) }) // forget stops it
		c.Emit(slipstream.Event{Kind: slipstream.Ejected, Addr: m.addr, At: now, Err: cause, Backoff: d})
		c.Rebuild()
	})
}

// mostEjected returns the maximum number of ejected members. The caller must hold the set's lock.
func (p *Pool) mostEjected(c *change) int {
	return int(p.config.MaxEjected * float64(len(c.Members())))
}

// restore ends the ejection of a member. It runs on a timer.
func (p *Pool) restore(m *member) {
	p.set.Change(func(c *change) {
		if !c.Closed() && slices.Contains(c.Members(), m) && !m.ejected.IsZero() && !time.Now().Before(m.ejected) {
			p.restoreNow(c, m)
		}
	})
}

// restoreNow ends the ejection of a member. One more failure will eject it again. The caller must hold the set's lock.
func (p *Pool) restoreNow(c *change, m *member) {
	now := time.Now()
	p.forget(m)
	m.restored = now
	m.failures.Store(int64(p.config.Failures - 1))
	m.warm()
	c.Emit(slipstream.Event{Kind: slipstream.Restored, Addr: m.addr, At: now})
	c.Rebuild()
}

// forget ends the ejection of a member, if it is ejected, without an event. The caller must hold the set's lock.
func (p *Pool) forget(m *member) {
	if m.ejected.IsZero() {
		return
	}
	m.ejected = time.Time{}
	m.timer.Stop()
	p.ejected--
}

// keepBound restores members if too many are ejected because the number of members has fallen. It starts with those
// whose ejection ends first. The caller must hold the set's lock.
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
