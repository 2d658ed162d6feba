package tarantool

import (
	"context"
	"math/rand/v2"
	"time"
)

// poolView is which instances requests may go to, at one moment. It is immutable.
type poolView struct {
	writable, readOnly []*instance
	serving            []*instance   // these, and those whose role is not known
	changed            chan struct{} // closed when there is a newer view
	closed             bool          // the pool is
}

// rebuild makes a view of what the instances are now. It is called with mu held.
func (p *Pool) rebuild() {
	v := &poolView{changed: make(chan struct{}), closed: p.closed}
	if !p.closed {
		for _, i := range p.instances {
			switch i.state {
			case InstanceReadWrite:
				v.writable = append(v.writable, i)
			case InstanceReadOnly:
				v.readOnly = append(v.readOnly, i)
			case InstanceUnknown:
			default:
				continue
			}
			v.serving = append(v.serving, i)
		}
	}
	close(p.view.Swap(v).changed)
}

// pick chooses an instance, never the one to be avoided; nil: there is none.
func (v *poolView) pick(mode Mode, avoid *instance) *instance {
	var i *instance
	switch mode {
	case ReadWrite:
		return lighter(v.writable, avoid)
	case ReadOnly:
		return lighter(v.readOnly, avoid)
	case PreferReadWrite:
		i = lighter(v.writable, avoid)
	case PreferReadOnly:
		i = lighter(v.readOnly, avoid)
	}
	if i == nil {
		i = lighter(v.serving, avoid)
	}
	return i
}

// lighter draws two instances and returns the one with the fewer requests under way. To look at
// all of them would send everybody to the same.
func lighter(list []*instance, avoid *instance) *instance {
	n := len(list)
	if n == 0 {
		return nil
	}
	if n == 1 {
		if list[0] == avoid {
			return nil
		}
		return list[0]
	}
	first := rand.IntN(n)
	second := rand.IntN(n - 1)
	if second >= first {
		second++
	}
	a, b := list[first], list[second]
	switch {
	case a == avoid:
		return b
	case b == avoid || a.outstanding() <= b.outstanding():
		return a
	}
	return b
}

// eagerInterval is how often instances are asked for their role while requests wait.
const eagerInterval = 50 * time.Millisecond

// await waits for an instance, at most for that time; 0: as long as ctx lasts.
func (p *Pool) await(ctx context.Context, mode Mode, most time.Duration) (*instance, error) {
	if i := p.view.Load().pick(mode, nil); i != nil {
		return i, nil
	}
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	p.waiting.Add(1)
	defer p.waiting.Add(-1)
	p.lookAgain()
	for {
		v := p.view.Load()
		if i := v.pick(mode, nil); i != nil {
			return i, nil
		}
		if v.closed {
			return nil, p.closedError("pool")
		}
		select {
		case <-v.changed:
		case <-ctx.Done():
			return nil, p.noInstance(mode, ctx.Err())
		}
	}
}

// lookAgain has every instance asked for its role.
func (p *Pool) lookAgain() {
	p.mu.Lock()
	all := p.instances
	p.mu.Unlock()
	for _, i := range all {
		i.poke()
	}
}
