package governance

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
)

// watch calls the resolver until the pool is closed.
func (p *Pool) watch() {
	for p.ctx.Err() == nil {
		began := time.Now()
		end := p.probe.Begin()
		p.resolve()
		end()
		interval := p.config.Refresh
		if len(p.set.View().Value.members) == 0 {
			interval = leastRefresh
		}
		p.probe.Rest(p.ctx, began, leastRefresh, interval)
	}
}

// resolve calls the resolver and updates the members if it succeeds.
func (p *Pool) resolve() {
	ctx, cancel := context.WithTimeout(p.ctx, mostResolving)
	defer cancel()
	members, err := p.ask(ctx)
	if p.ctx.Err() != nil {
		return
	}
	if err == nil {
		err = p.apply(members)
	}
	if err != nil {
		p.set.Change(func(c *change) {
			p.resolveErr = err
			p.unresolved++
			c.Emit(slipstream.Event{Kind: slipstream.ResolveFailed, At: time.Now(), Err: err})
		})
	}
}

// ask calls the resolver and checks the members that it returns.
func (p *Pool) ask(ctx context.Context) (members []Member, err error) {
	defer func() {
		if v := recover(); v != nil {
			members, err = nil, fmt.Errorf("%s: the resolver panicked: %v", check, v)
		}
	}()
	if members, err = p.config.Resolver.Resolve(ctx); err != nil {
		return nil, err
	}
	switch n := len(members); {
	case n == 0:
		return nil, errors.New(string(check) + ": the resolver found no members")
	case n > maxMembers:
		return nil, fmt.Errorf("%s: the resolver found %d members; the limit is %d", check, n, maxMembers)
	}
	for i := range members {
		if err := members[i].check(); err != nil {
			return nil, err
		}
	}
	return members, nil
}

// apply sets the members of the pool. Members that remain keep their connections. Duplicate addresses are ignored.
func (p *Pool) apply(members []Member) (err error) {
	known := make(map[string]bool)
	for _, m := range p.set.Members() {
		known[m.addr] = true
	}
	weights := make(map[string]int32, len(members))
	var added, gone []*member
	for _, one := range members {
		if _, twice := weights[one.Addr]; twice {
			continue
		}
		weights[one.Addr] = int32(max(one.Weight, 1))
		if !known[one.Addr] {
			m, failed := p.newMember(one.Addr)
			if failed != nil {
				err = failed
				continue
			}
			added = append(added, m)
		}
	}
	p.set.Change(func(c *change) {
		if c.Closed() {
			gone = added
			return
		}
		p.resolveErr = nil
		for _, m := range c.Members() {
			if _, stays := weights[m.addr]; !stays {
				gone = append(gone, m)
			}
		}
		for _, m := range gone {
			p.forget(m)
			c.Remove(m)
		}
		for _, m := range added {
			c.Add(m)
		}
		for _, m := range c.Members() {
			m.weight.Store(weights[m.addr])
		}
		p.keepBound(c)
		c.Rebuild()
	})
	for _, m := range gone {
		p.running.Go(func() { p.drain(m) }) // p.drains ends it, and Close waits for it
	}
	return err
}

// newMember returns a member that connects in the background.
func (p *Pool) newMember(addr string) (*member, error) {
	m := &member{addr: addr, hash: hashOf(addr), warmUp: p.config.WarmUp}
	config := p.config.Client
	config.Addr, config.OnEvent = addr, func(e slipstream.Event) { p.event(m, e) }
	m.warm()
	var err error
	m.backend, err = p.open(config)
	return m, err
}

// drain closes a removed member after its calls have ended.
func (p *Pool) drain(m *member) {
	ctx, cancel := context.WithTimeout(p.drains, mostDraining)
	defer cancel()
	_ = m.backend.Shutdown(ctx) // its calls report their own errors
	final := m.backend.Stats().Stats
	final.RoundTrip, final.FlushFactor = 0, 0 // meaningful only for servers in use
	p.set.Change(func(*change) { driver.AddStats(&p.left, &final) })
}

// mostDraining limits how long the calls of a removed member may take.
const mostDraining = time.Minute

// event handles an event of a member's client.
func (p *Pool) event(m *member, e slipstream.Event) {
	unreached := false
	p.set.Change(func(c *change) {
		if m.note(e) {
			c.Rebuild()
		}
		unreached = e.Kind == slipstream.DialFailed && m.conns == 0
		if !c.Closed() {
			c.Emit(e)
		}
	})
	if unreached {
		p.failed(m, e.Err)
		p.probe.Wake() // the member may have a new address
	}
}
