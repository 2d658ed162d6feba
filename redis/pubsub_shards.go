package redis

import (
	"time"

	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

// A channel of a shard has a slot, and is on the line to the owner of the slot. There is at most
// one such line for each node, and a line without channels ends. A message is delivered only if it
// comes from the line that has the channel, and if that has confirmed it. So a node cannot send
// messages for channels of other nodes, and a channel keeps its order between two Gaps.
//
// A channel without a line is astray. It becomes so when the node refuses it or ends it (by
// sunsubscribe, when the slot has moved). One goroutine, hub.place, puts it on the line to the
// current owner, immediately if a refresh has found another owner. Otherwise it does so after a
// pause, which doubles each time the channel ends again within a second. MOVED, ASK and temporary
// errors are handled by router.refused, like those of calls. Only channels that were confirmed
// before are retried without a limit.
//
// After each refresh, confirmed channels move to the owner in the table, unless they were confirmed
// less than a second ago, because the node that confirms a channel knows more than a third one. The
// loss of a line affects only its channels. Each of them has its own Gap, before its next message;
// the main line is not affected.

const (
	// steady is how long a channel of a shard must have been confirmed before the table of slots is
	// trusted more than the node that has confirmed it, and before its failures no longer count.
	steady = time.Second
	// redirectsAgain is the number of consecutive redirects that are followed after a pause.
	redirectsAgain = 2
	// placeIdle is how long place sleeps if there is nothing to do.
	placeIdle = time.Hour
)

// A placement is the state of a channel of a shard that is looking for its node.
type placement struct {
	// Guarded by hub.mu.
	route      route     // the route of the command in flight, like that of a call
	wasInForce bool      // it was confirmed at some time
	since      time.Time // when it was last confirmed
	failures   int       // consecutive failures: it was refused, or ended before it was steady
	due        time.Time // when to try again, if it is astray
	from       *node     // the node that has refused or ended it
}

// settle records that the channel was confirmed.
func (p *placement) settle() {
	p.route = route{slot: p.route.slot}
	p.wasInForce, p.since = true, time.Now()
}

// leadsElsewhere reports whether an error leaves a chance to subscribe at another node or later, as
// opposed to one that says that this user may not subscribe.
func leadsElsewhere(e *ServerError) bool {
	return cluster.Advise(e.Code).When != cluster.Never || e.passing()
}

// toOwners puts channels without a line on the lines to the owners of their slots. If there is no
// table of slots yet, they wait for one. The caller holds mu.
func (h *hub) toOwners(topics []*topic) {
	if !h.placing {
		h.placing = true
		h.goroutines.Go(h.place) // stopped by close, which waits for it
	}
	known := len(h.shards.nodes.Table().Members()) > 0
	to := make(map[*node][]*topic)
	for _, t := range topics {
		if known {
			n := h.shards.owner(t.route.slot)
			to[n] = append(to[n], t)
		} else {
			t.due = time.Now().Add(longestPause)
			h.astray[t] = struct{}{}
		}
	}
	h.toNodes(to)
}

// toNodes puts channels on lines. The caller holds mu.
func (h *hub) toNodes(to map[*node][]*topic) {
	for n, topics := range to {
		for _, t := range topics {
			delete(h.astray, t)
		}
		l := h.lines[n]
		if l == nil {
			l = h.newLine(n)
			h.lines[n] = l
			l.start()
		}
		l.take(topics)
	}
}

// stray makes a channel wait for place, because a node does not have it. The caller holds mu.
func (h *hub) stray(t *topic, from *node) {
	t.failures++
	pause := h.client.retry.Backoff.After(t.failures)
	if t.wasInForce {
		t.route.redirects = maxRedirects - redirectsAgain // it is retried without a limit
	} else {
		pause = min(pause, longestPause) // a caller waits for the subscription
	}
	t.due, t.from = time.Now().Add(pause), from
	h.astray[t] = struct{}{}
	h.stir()
}

// evict handles a channel that its node has ended because the slot has moved. The caller holds mu.
func (h *hub) evict(t *topic) {
	if time.Since(t.since) >= steady {
		t.failures = 0
	}
	from := t.line
	from.forget(t)
	h.lose(t)
	h.shards.refresher.Request()
	h.stray(t, from.node)
}

// redirect handles channels in one slot that a node has temporarily refused, by the rules for
// calls. Channels that were confirmed before are retried without a limit. The caller holds mu.
func (h *hub) redirect(l *line, topics []*topic, e *ServerError) {
	to := make(map[*node][]*topic)
	for _, t := range topics {
		r := request{node: l.node, route: t.route}
		d := h.shards.refused(&r, e)
		if d.how == goVerify {
			h.shards.refresher.Request()
			d = h.shards.pausing(&r)
		}
		t.route = r.route
		t.route.asking = d.how == goNow && d.asking
		l.forget(t)
		switch {
		case d.how == goNow:
			to[d.node] = append(to[d.node], t)
		case d.how == goEnd && !t.wasInForce:
			h.deny(t, e)
		default:
			h.stray(t, l.node)
		}
	}
	h.toNodes(to)
}

// strand ends the line to a node that has left, and puts its channels on the lines to the owners of
// their slots. The caller holds mu.
func (h *hub) strand(l *line) {
	topics := make([]*topic, 0, len(l.topics))
	for t := range l.topics {
		l.forget(t)
		h.lose(t)
		topics = append(topics, t)
	}
	l.end()
	h.toOwners(topics)
}

// remap is called when there is a new table of slots.
func (h *hub) remap() {
	h.remapped.Store(true)
	h.stir()
}

// stir makes place check whether there is something to do.
func (h *hub) stir() {
	select {
	case h.wake <- struct{}{}:
	default:
	}
}

// place keeps channels of shards at the owners of their slots until the hub is closed.
func (h *hub) place() {
	timer := time.NewTimer(placeIdle)
	defer timer.Stop()
	for {
		timer.Reset(h.arrange())
		select {
		case <-h.wake:
		case <-timer.C:
		case <-h.ctx.Done():
			return
		}
	}
}

// arrange puts the channels that are due on the lines to the owners of their slots. It returns how
// long there is nothing more to do.
func (h *hub) arrange() time.Duration {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return placeIdle
	}
	now, table := time.Now(), h.shards.nodes.Table()
	remapped := h.remapped.Swap(false)
	var topics []*topic
	if remapped || !h.recheck.IsZero() && !h.recheck.After(now) {
		topics = h.displaced(now)
	}
	for t := range h.astray {
		owner := table.Route(uint16(t.route.slot))
		if !t.due.After(now) || remapped && owner != nil && owner.Peer != t.from {
			topics = append(topics, t)
		}
	}
	h.toOwners(topics)
	next := now.Add(placeIdle)
	if !h.recheck.IsZero() {
		next = h.recheck
	}
	for t := range h.astray {
		if t.due.Before(next) {
			next = t.due
		}
	}
	return max(time.Until(next), 0)
}

// displaced removes channels from lines to nodes that do not own their slots. Channels that such a
// node has just confirmed may stay until recheck. The caller holds mu.
func (h *hub) displaced(now time.Time) (topics []*topic) {
	table := h.shards.nodes.Table()
	h.recheck = time.Time{}
	for _, t := range h.topics {
		if !t.sharded || t.line == nil {
			continue
		}
		if owner := table.Route(uint16(t.route.slot)); owner == nil || owner.Peer == t.line.node {
			continue
		}
		if at := t.since.Add(steady); t.inForce && at.After(now) {
			if h.recheck.IsZero() || at.Before(h.recheck) {
				h.recheck = at
			}
			continue
		}
		l := t.line
		l.release(t)
		h.lose(t)
		topics = append(topics, t)
		if len(l.topics) == 0 {
			l.end() // otherwise the connection would stay open until it is silent
		}
	}
	return topics
}
