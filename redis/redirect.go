package redis

import (
	"context"
	"errors"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// A call carries its slot, or noSlot; finding the owner takes two atomic loads. Calls without keys
// go to a master that depends on the time, so that such calls share writes. With ReadFrom, the node
// for the reads of a shard is selected again every 40 ms (replica.go).
//
//   - After a failed attempt, judge decides how the call continues, without waiting: not at all;
//     immediately at the target of MOVED or ASK, or at the owner of the slot if the attempt was
//     made elsewhere; after a refresh, if the target is not a known node; or after a pause of at
//     most 100 ms. wait waits, and ready passes the call to the next engine. With ASK, the call
//     becomes two commands. Callers that wait do all this on their goroutine. A completion
//     redirects on the reading goroutine, and waits on a dedicated one. A call that waits for a
//     node ends after DialTimeout, and so does one with 16 consecutive redirects.
//   - No call is executed twice, because of the outcome of each attempt: a call is retried only if
//     it was refused or not sent, or if it changes nothing.
//   - Redirects for a slot other than that of the command, or for a command without keys, are not
//     followed, unless the keys are guessed.

// A route is how a call finds its node in a cluster, and its state across attempts.
type route struct {
	// since is the time of the first temporary failure, as the time since router.began; 0 if there
	// was none.
	since     time.Duration
	slot      int32 // slot of the keys, or noSlot
	guessed   bool  // the client does not know where the keys are, so slot may be wrong
	asking    bool  // the current attempt is ASKING and the command
	redirects uint8 // consecutive MOVED and ASK replies
	lost      uint8 // attempts without a reply
}

const (
	// noSlot is the slot of a call without keys. Any node executes such a call.
	noSlot = -1
	// maxRedirects bounds the consecutive redirects of a call.
	maxRedirects = 16
	// longestPause bounds the pauses of calls whose node is down, so that they notice the end of a
	// failover soon.
	longestPause = 100 * time.Millisecond

	askingFrame = "*1\r\n$6\r\nASKING\r\n"
)

// keyed reports whether the command may have keys.
func (in *commandInfo) keyed() bool { return in.key > 0 || in.manyKeys() }

// manyKeys reports whether the command may have several keys, or none.
func (in *commandInfo) manyKeys() bool { return in.specs != nil || in.options != nil }

// guessed reports whether the client does not know where the keys of the command are. A server may then
// redirect the command for a slot other than the one it was sent to.
func (in *commandInfo) guessed() bool { return in == unknownCommand || in.subcommands != nil }

// slotOf returns the slot of the keys of an encoded command, or noSlot if the command has no keys.
func slotOf(in *commandInfo, frame []byte) (int32, error) {
	of := int32(noSlot)
	keys := in.keysIn(frame)
	for {
		from, to, ok := keys.next()
		if !ok {
			return of, nil
		}
		switch s := int32(slot.OfBytes(frame[from:to])); {
		case of == noSlot:
			of = s
		case of != s:
			return noSlot, ErrCrossSlot
		}
	}
}

// A course says what happens to a call after a failed attempt.
type course uint8

const (
	goEnd    course = iota // make no further attempt: the failure is the result
	goNow                  // retry at the given node immediately
	goVerify               // retry after a refresh, because the target of the redirect is not a known node
	goPause                // retry after a pause, at the node that owns the slot by then
)

// A detour is a course with its parameters.
type detour struct {
	how    course
	node   *node // for goNow
	asking bool
	addr   string // for goVerify
}

// judge decides what happens to a call after a failed attempt, and sets the outcome of failure to that
// of all attempts. It never waits.
func (k *router) judge(r *request, failure *slipstream.Error) detour {
	outcome := failure.Outcome
	left := outcome == slipstream.Closed && !k.core.isClosed() // the node was closed because it has left the cluster
	if left {
		outcome = slipstream.NotSent
	}
	failure.Outcome = r.loop.Over(outcome)
	switch outcome {
	case slipstream.Refused:
		if e, ok := errors.AsType[*ServerError](failure.Err); ok {
			return k.refused(r, e)
		}
	case slipstream.NotSent:
		if (left || !k.core.opts.FailFast) && !attempt.TimeIsUp(failure.Err) {
			k.lost()
			return k.elsewhere(r)
		}
	case slipstream.MaybeExecuted:
		if r.repeatable && !attempt.TimeIsUp(failure.Err) && int(r.route.lost) < k.core.retry.Retries {
			r.route.lost++
			k.lost()
			return k.elsewhere(r)
		}
	}
	return detour{}
}

// elsewhere retries at the owner of the slot: immediately if the owner is another node than the one that
// failed, otherwise after a pause. If the owner has redirected the call to the node that failed, it would
// do so again, so there is a pause as well.
func (k *router) elsewhere(r *request) detour {
	if r.route.asking || r.route.guessed {
		return k.pausing(r)
	}
	if n := k.owner(r.route.slot); n != r.node && r.route.redirects < maxRedirects {
		r.route.redirects++
		return detour{how: goNow, node: n}
	}
	return k.pausing(r)
}

// refused decides like judge, for an error reply of a server that did not execute the command.
func (k *router) refused(r *request, e *ServerError) detour {
	advice := k.heed(e)
	switch {
	case advice.Where == cluster.ToTarget:
		return k.redirected(r, e)
	case advice.Where == cluster.ToOther:
		return k.elsewhere(r)
	case advice.When != cluster.Never || e.passing():
		return k.pausing(r)
	}
	return detour{}
}

// downFor is how long refreshes are urgent after a node has said that the cluster is down.
const downFor = time.Second

// heed returns how to handle an error reply, and requests the refresh that it makes necessary.
// While a node says that the cluster is down, calls wait for a failover, so refreshes are urgent.
// They are not urgent if a slot has no owner, because no failover gives it one.
func (k *router) heed(e *ServerError) cluster.Advice {
	advice := cluster.Advise(e.Code)
	if e.Code == "CLUSTERDOWN" && strings.HasPrefix(e.Message, "The cluster is down") {
		k.downUntil.Store(int64(time.Since(k.began) + downFor))
	}
	if advice.Refresh {
		k.refresher.Request()
	}
	return advice
}

// redirected follows MOVED and ASK if they are for the slot of the call. A server has no reason to
// redirect another slot, but a script or a function may return any text.
func (k *router) redirected(r *request, e *ServerError) detour {
	to, err := cluster.ParseRedirect(e.Code, e.Message)
	if err != nil || r.route.redirects >= maxRedirects || !k.sharded {
		return detour{}
	}
	if int32(to.Slot) != r.route.slot && !r.route.guessed {
		return detour{}
	}
	addr, err := to.Addr(&k.addresses, r.node.fail.Addr)
	if err != nil {
		return detour{}
	}
	r.route.redirects++
	member := k.nodes.Table().Find(addr)
	if member == nil {
		k.note(r) // done here, so that the commands of a batch wait together
		return detour{how: goVerify, addr: addr, asking: to.Ask}
	}
	if !to.Ask && int32(to.Slot) == r.route.slot {
		k.move(to.Slot, member)
	}
	return detour{how: goNow, node: member.Peer, asking: to.Ask}
}

// pausing retries after a pause, unless the call has already waited for DialTimeout.
func (k *router) pausing(r *request) detour {
	r.route.redirects = 0
	if !k.note(r) && time.Since(k.began)-r.route.since >= k.core.opts.dialTimeout() {
		return detour{}
	}
	return detour{how: goPause}
}

// note records the time of the first temporary failure of a call, and reports whether this failure
// is the first.
func (k *router) note(r *request) (first bool) {
	if r.route.since != 0 {
		return false
	}
	r.route.since = max(1, time.Since(k.began))
	return true
}

// wait blocks until the next attempt of a call may start. It returns false if there is no time
// left.
func (k *router) wait(ctx context.Context, r *request, d *detour) bool {
	switch d.how {
	case goVerify:
		within, cancel := context.WithDeadline(ctx, k.began.Add(r.route.since+k.core.opts.dialTimeout()))
		_, listed, err := k.refresher.Verify(within, d.addr)
		cancel()
		if ctx.Err() != nil {
			return false
		}
		if member := k.nodes.Table().Find(d.addr); listed && err == nil && member != nil {
			d.how, d.node = goNow, member.Peer
			return true
		}
		// The client never connects to an address that is not in the topology.
		if *d = k.pausing(r); d.how == goPause {
			return k.pause(ctx, r)
		}
		return false
	case goPause:
		return k.pause(ctx, r)
	}
	return true
}

// pause waits before the next attempt, for at most longestPause. It returns false if there is no time
// left.
func (k *router) pause(ctx context.Context, r *request) bool {
	d := min(k.core.retry.Backoff.After(max(r.loop.Made, 1)), longestPause)
	if t := k.core.opts.Timeout; t > 0 && !r.loop.Start.IsZero() && time.Since(r.loop.Start)+d >= t {
		return false
	}
	if at, ok := ctx.Deadline(); ok && time.Until(at) <= d {
		return false
	}
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return true
	case <-ctx.Done():
	case <-k.core.closing:
	}
	return false
}

// ready prepares the next attempt of a call.
func (k *router) ready(r *request, d detour) {
	if d.how == goPause {
		d.node = k.owner(r.route.slot)
	}
	k.core.retry.Count()
	r.renew(d.node, d.asking)
}

// goesOn reports whether there is another attempt after a failed one. It waits for the time of that
// attempt and prepares it.
func (k *router) goesOn(ctx context.Context, r *request, failure *slipstream.Error) bool {
	d := k.judge(r, failure)
	if d.how == goEnd || !k.wait(ctx, r, &d) {
		return false
	}
	k.ready(r, d)
	return true
}

// follows reports whether err means that the transaction was not executed because the slot of keys has
// moved to another node, or because from is no longer the master. The new owner is known when follows
// returns true.
func (k *router) follows(ctx context.Context, from *node, keys []string, err error) bool {
	failure, ok := errors.AsType[*slipstream.Error](err)
	if !ok || failure.Outcome != slipstream.Refused || len(keys) == 0 && k.sharded {
		return false // the transaction may have been executed
	}
	e, ok := errors.AsType[*ServerError](failure.Err)
	if ok && e.Code == "READONLY" && !k.sharded {
		return k.replaced(ctx, from)
	}
	if !ok || e.Code != "MOVED" || !k.sharded {
		return false
	}
	r := request{node: from, route: route{slot: int32(slot.Of(keys[0]))}}
	d := k.redirected(&r, e)
	return d.how != goEnd && k.wait(ctx, &r, &d)
}

// replaced waits until another server than old is the master, for at most DialTimeout.
func (k *router) replaced(ctx context.Context, old *node) bool {
	k.refresher.Request()
	r := request{node: old}
	for k.owner(0) == old {
		d := k.pausing(&r)
		if d.how == goEnd || !k.wait(ctx, &r, &d) {
			return false
		}
		r.loop.Made++
	}
	return true
}

// learn updates the map of slots from the error reply to a command of a session.
func (k *router) learn(from *node, cmd *Command, e *ServerError) {
	k.heed(e)
	if s, err := slotOf(cmd.info, cmd.frame); err == nil && e.Code == "MOVED" {
		k.redirected(&request{node: from, route: route{slot: s}}, e)
	}
}
