package sentinel

import (
	"context"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

// answer is the result of querying one Sentinel.
type answer struct {
	addr string
	view *View
	err  error
}

// A ballot collects the answers of a refresh.
type ballot struct {
	inForce   *View // nil if there is none yet
	confirmed *View // from a Sentinel that names the current master; the one with the most replicas
	olds      []*View
	failures  NoMasterError
	refuted   map[string]error // by server: why it is not used although a Sentinel named it
}

// refresh queries all Sentinels until one names a newer master.
func (r *Refresher) refresh(ctx context.Context) error {
	ctx, cancel := context.WithCancelCause(ctx)
	defer cancel(nil)
	r.setInterrupt(func() { cancel(errInterrupted) })
	defer r.setInterrupt(nil)
	addrs := r.sentinels()
	answers := make(chan answer, len(addrs))
	for _, addr := range addrs {
		// Ended by cancel and by Config.Timeout; Close waits for it.
		r.running.Go(func() { answers <- r.ask(ctx, addr) })
	}
	b := ballot{inForce: r.InForce(), refuted: make(map[string]error)}
	b.failures.Name = r.config.Name
	var patience <-chan time.Time // set when a Sentinel has answered
	var pushed chan struct{}      // set when a Sentinel has confirmed the current master
	for left := len(addrs); left > 0; left-- {
		select {
		case a := <-answers:
			if r.count(ctx, &b, a) {
				return nil
			}
			if a.err == nil && patience == nil {
				timer := time.NewTimer(r.config.Patience)
				defer timer.Stop()
				patience = timer.C
			}
			if b.confirmed != nil {
				pushed = r.pushed
			}
		case <-patience:
			left = 1
		case <-pushed:
			signal(r.pushed) // for the next refresh
			left = 1
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	return r.decide(ctx, &b)
}

// ask queries one Sentinel, and queries it again if the Sentinel learns of a failover in the
// meantime.
func (r *Refresher) ask(ctx context.Context, addr string) answer {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	a := answer{addr: addr}
	commands := Commands(r.config.Name, r.config.Replicas)
	for range 3 {
		frames, err := r.config.Asker.Ask(ctx, addr, commands)
		if err == nil && len(frames) != len(commands) {
			err = fmt.Errorf("%d replies to %d commands", len(frames), len(commands))
		}
		if err != nil {
			a.err = err
			return a
		}
		if a.view, a.err = ParseView(addr, r.config.Addresses, frames); a.err != errMoving {
			return a
		}
	}
	return a
}

// count adds an answer to the ballot. It reports whether the view of the answer is the current one
// now.
func (r *Refresher) count(ctx context.Context, b *ballot, a answer) (taken bool) {
	if a.err != nil {
		b.fail(a.addr, a.err)
		return false
	}
	r.learn(a.view)
	switch {
	case a.view.newerThan(b.inForce):
		if err := r.take(ctx, b, a.view); err != nil {
			b.fail(a.addr, err)
			return false
		}
		return true
	case a.view.confirms(b.inForce):
		if b.confirmed == nil || len(a.view.Replicas) > len(b.confirmed.Replicas) {
			b.confirmed = a.view
		}
	default:
		b.olds = append(b.olds, a.view)
		b.fail(a.addr, ErrOldView)
	}
	return false
}

func (b *ballot) fail(addr string, err error) {
	b.failures.Answers = append(b.failures.Answers, Answer{addr, err})
}

// newerThan reports whether v is newer than the current view, which is nil if there is none.
func (v *View) newerThan(inForce *View) bool {
	switch {
	case inForce == nil:
		return true
	case v.Dated && inForce.Dated:
		return v.Epoch > inForce.Epoch
	case v.Dated:
		return true
	}
	return !inForce.Dated && v.Master != inForce.Master
}

// confirms reports whether v, which is not newer, names the current master.
func (v *View) confirms(inForce *View) bool {
	return v.Master == inForce.Master && (!v.Dated || v.Epoch == inForce.Epoch)
}

// decide ends a refresh in which no Sentinel named a newer master.
func (r *Refresher) decide(ctx context.Context, b *ballot) error {
	if b.confirmed != nil {
		r.doubt = doubt{}
		r.useless++
		r.putInForce(b.inForce.withReplicas(b.confirmed.Replicas, b.confirmed.Unwell))
		return nil
	}
	v := b.majority(len(r.config.Addresses.Seeds))
	if v == nil {
		r.doubt = doubt{}
		return &b.failures
	}
	if r.doubt.master != v.Master || r.doubt.epoch != v.Epoch {
		r.doubt = doubt{master: v.Master, epoch: v.Epoch, since: time.Now()}
	}
	if r.doubt.rounds++; r.doubt.rounds < resetRounds || time.Since(r.doubt.since) < resetAfter {
		return ErrOldView
	}
	if err := r.take(ctx, b, v); err != nil {
		b.fail(v.From, err)
		return &b.failures
	}
	return nil
}

// majority returns an old view that most Sentinels share, or nil. Least is a lower bound of the number of
// Sentinels.
func (b *ballot) majority(least int) *View {
	for _, v := range b.olds {
		votes := make(map[string]bool)
		for _, other := range b.olds {
			if other.Master == v.Master && other.Epoch == v.Epoch {
				votes[other.Self] = true
			}
		}
		if 2*len(votes) > max(v.Peers+1, least) {
			return v
		}
	}
	return nil
}

// take makes a view the current one if the server that it names is a master. Each server is queried
// only once in a refresh.
func (r *Refresher) take(ctx context.Context, b *ballot, v *View) error {
	err, asked := b.refuted[v.Master]
	if !asked {
		if err = r.verify(ctx, v.Master); err != nil {
			err = &MasterError{Addr: v.Master, Err: err}
			b.refuted[v.Master] = err
		}
	}
	if err != nil {
		return err
	}
	if b.inForce == nil || b.inForce.Master != v.Master {
		r.useless = 0
	}
	r.doubt = doubt{}
	if r.config.Replicas && b.inForce != nil && b.inForce.Master != v.Master {
		v = v.withReplicas(nil, true)
	}
	r.putInForce(v)
	return nil
}

// withReplicas returns a view with other replicas.
func (v *View) withReplicas(replicas []string, unwell bool) *View {
	changed := *v
	changed.Replicas, changed.Unwell = replicas, unwell
	return &changed
}

// putInForce makes a view the current one. A new master has no replicas until the next refresh,
// which comes soon. So the connections to the old master end, even if it is already a replica.
func (r *Refresher) putInForce(v *View) {
	if r.unwell++; !v.Unwell {
		r.unwell = 0
	}
	r.inForce.Store(v)
	r.config.Apply(cluster.Single(v.Master, v.Replicas...))
}

// verify queries whether a server is a master.
func (r *Refresher) verify(ctx context.Context, addr string) error {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	reply, err := r.config.Asker.Role(ctx, addr)
	if err != nil {
		return err
	}
	return checkRole(reply)
}

// setInterrupt sets the function that ends the refresh in progress.
func (r *Refresher) setInterrupt(f func()) {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.interrupt = f
}
