package tarantool

import (
	"context"
	"errors"
	"time"

	"github.com/slipstream-go/slipstream/internal/fleet"
)

// poolView says to which instances requests may be sent, at one moment. It is immutable.
type poolView struct {
	writable, readOnly []*instance
	serving            []*instance // instances of both roles, and those whose role is not known
}

// viewOf makes the view of instances. Their states are locked.
func viewOf(instances []*instance) poolView {
	var v poolView
	for _, i := range instances {
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
	return v
}

// pick returns a suitable instance other than avoid, or nil if there is none.
func (v *poolView) pick(mode Mode, avoid *instance) *instance {
	var i *instance
	switch mode {
	case ReadWrite:
		return fleet.Lighter(v.writable, avoid)
	case ReadOnly:
		return fleet.Lighter(v.readOnly, avoid)
	case PreferReadWrite:
		i = fleet.Lighter(v.writable, avoid)
	case PreferReadOnly:
		i = fleet.Lighter(v.readOnly, avoid)
	}
	if i == nil {
		i = fleet.Lighter(v.serving, avoid)
	}
	return i
}

// pick returns an instance that is suitable now.
func (p *Pool) pick(mode Mode, avoid *instance) *instance {
	return p.set.View().Value.pick(mode, avoid)
}

// eagerInterval is how often the role of instances is queried while requests wait.
const eagerInterval = 50 * time.Millisecond

// await waits for an instance, for at most the given time; if that is zero, only ctx bounds it.
func (p *Pool) await(ctx context.Context, mode Mode, most time.Duration) (*instance, error) {
	if i := p.pick(mode, nil); i != nil {
		return i, nil
	}
	if most > 0 {
		var cancel context.CancelFunc
		ctx, cancel = context.WithTimeout(ctx, most)
		defer cancel()
	}
	var i *instance
	err := p.set.Await(ctx, func(v poolView) bool {
		i = v.pick(mode, nil)
		return i != nil
	}, p.lookAgain)
	switch {
	case err == nil:
		return i, nil
	case errors.Is(err, fleet.ErrClosed):
		return nil, p.closedError("pool")
	}
	return nil, p.noInstance(mode, err)
}

// lookAgain makes the pool query the role of every instance.
func (p *Pool) lookAgain() {
	for _, i := range p.set.Members() {
		i.probe.Wake()
	}
}

// recheck waits until the role of each of these instances has been queried after the call.
func (p *Pool) recheck(ctx context.Context, these []*instance) {
	p.lookAgain()
	fleet.Recheck(ctx, these, func(i *instance) (*fleet.Probe, context.Context) { return i.probe, i.ctx })
}
