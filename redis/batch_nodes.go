package redis

import (
	"bytes"
	"context"
	"errors"
	"slices"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// In the first round a batch has one contiguous group for each node, all of them in flight together.
// Commands that were redirected or not sent follow in rounds of single calls, in the order of the
// batch, with one pause for all. A transaction is sent again as a whole.

var errApart = errors.New("the command goes to several nodes of the cluster, so it cannot be part of a batch; use Client.Do, or give its keys the same hash tag")

// A scatter is a batch that is sent to the nodes of a cluster. It is owned by its caller and recycled.
type scatter struct {
	// Immutable: the method value refuse, allocated once for all batches.
	refused func(i int, err error) bool

	client *Client
	cmds   []Command
	dsts   []any
	routes []route
	groups []*parts  // one for each node
	from   *node     // the node whose replies are being collected
	later  []delayed // commands to be sent again
	report batchReport
	failed func(int, error) // if set, called with each error
	sent   int              // bytes sent
	got    int              // bytes received
}

var scatters = sync.Pool{New: func() any {
	s := new(scatter)
	s.refused = s.refuse
	return s
}}

// delayed is a command that is sent again, as a separate call.
type delayed struct {
	request
	index   int
	detour  detour
	failure *slipstream.Error // of the previous attempt
}

// doAcross sends commands to the nodes that own their keys, and waits for all replies. In the first
// round the commands for each node are contiguous. Commands that a node refuses or does not get are
// sent again one by one.
func (c *Client) doAcross(ctx context.Context, cmds []Command, dsts []any, failed func(int, error)) error {
	if len(cmds) == 0 {
		return nil
	}
	s := c.scatterOf(cmds, dsts, failed)
	defer s.release()
	return s.run(ctx)
}

// scatterOf returns a batch that is ready to be sent. It must be released.
func (c *Client) scatterOf(cmds []Command, dsts []any, failed func(int, error)) *scatter {
	s := scatters.Get().(*scatter)
	s.client, s.cmds, s.dsts, s.failed = c, cmds, dsts, failed
	return s
}

// run sends the commands, at least one, and waits for all. A destination that is a lentFrame is valid
// until release.
func (s *scatter) run(ctx context.Context) error {
	c := s.client
	var start time.Time
	if c.timed {
		start = time.Now()
	}
	if bad, err := s.group(ctx); err != nil {
		return c.allNotSent(len(s.cmds), bad, err, s.failed)
	}
	s.first(ctx)
	attempts := 1
	for ; len(s.later) > 0; attempts++ {
		s.again(ctx, start)
	}
	if c.hooks.Observing() {
		c.observeBatch(ctx, c.fail.Addr, s.sent, s.got, len(s.cmds), s.report.first, start, attempts)
	}
	return s.report.err()
}

// group sorts the commands by node and prepares the calls to each node. If there is an error, it returns
// the index of the command. A command without keys goes to the node of the command before it.
func (s *scatter) group(ctx context.Context) (bad int, err error) {
	s.routes = slices.Grow(s.routes[:0], len(s.cmds))[:len(s.cmds)]
	var last *node
	for i := range s.cmds {
		cmd := &s.cmds[i]
		if cmd.info == unknownCommand {
			resolved := *cmd // a copy, because the caller may share its command
			if _, err := s.client.needsOwn(ctx, &resolved); err != nil {
				return i, err
			}
			cmd = &resolved
		}
		if err := s.client.sendable(cmd); err != nil {
			return i, err
		}
		if s.client.apart(cmd) {
			return i, s.client.fail.NotSent(cmd.name, errApart)
		}
		n, to, err := s.client.routeOf(cmd)
		if err != nil {
			return i, err
		}
		if to.slot == noSlot && last != nil {
			n = last
		}
		last, s.routes[i] = n, to
		p := s.groupOf(n)
		p.items = append(p.items, int32(i))
	}
	for _, p := range s.groups {
		if bad, err := s.client.cut(ctx, p, p.node, s.cmds, len(p.items)); err != nil {
			return bad, err
		}
		s.sent += p.size
	}
	return 0, nil
}

// groupOf returns the group of a node.
func (s *scatter) groupOf(n *node) *parts {
	for _, p := range s.groups {
		if p.node == n {
			return p
		}
	}
	p := partLists.Get().(*parts)
	p.node = n
	if p.items = p.spare; p.items == nil {
		p.items = make([]int32, 0, len(s.cmds)/2+1)
	}
	s.groups = append(s.groups, p)
	return p
}

// first sends all commands and collects the replies.
func (s *scatter) first(ctx context.Context) {
	for _, p := range s.groups {
		p.started = p.node.engine.StartAll(ctx, p.calls) == nil // otherwise each call has the error
	}
	for _, p := range s.groups {
		if p.started {
			_ = pipe.WaitAll(p.calls) // each call has its own error
		}
	}
	s.report.again = s.refused
	for _, p := range s.groups {
		s.from = p.node
		s.client.collect(s.cmds, s.dsts, p, &s.report, s.failed)
		s.got += p.received()
	}
	s.report.again = nil
}

// refuse is batchReport.again in the first round.
func (s *scatter) refuse(i int, err error) bool {
	return s.delay(delayed{request: s.request(s.from, i), index: i}, err)
}

// request returns the i-th command as a separate request.
func (s *scatter) request(n *node, i int) request {
	cmd := &s.cmds[i]
	return request{node: n, info: cmd.info, name: cmd.name, repeatable: cmd.repeatable(), route: s.routes[i]}
}

// delay records a command that is to be sent again. It returns false if err is final.
func (s *scatter) delay(d delayed, err error) bool {
	failure, ok := err.(*slipstream.Error)
	if !ok {
		return false
	}
	d.detour, d.failure = s.client.router.judge(&d.request, failure), failure
	if d.detour.how == goEnd {
		return false
	}
	s.later = append(s.later, d)
	return true
}

// again sends the delayed commands, in the order of the batch, and collects their replies.
func (s *scatter) again(ctx context.Context, start time.Time) {
	k, round := s.client.router, s.later
	s.later = nil
	slices.SortFunc(round, func(a, b delayed) int { return a.index - b.index })
	within, cancel := s.client.retry.Within(ctx, start)
	defer cancel()
	waited, inTime := false, true // one pause is enough for all
	for i := range round {
		d := &round[i]
		d.loop.Made++
		goesOn := true
		if d.detour.how != goPause || !waited {
			goesOn = k.wait(ctx, &d.request, &d.detour)
			if d.detour.how == goPause {
				waited, inTime = true, goesOn
			}
		}
		if !inTime {
			break
		}
		if !goesOn {
			d.detour.how = goEnd
			continue
		}
		cmd := &s.cmds[d.index]
		k.ready(&d.request, d.detour)
		d.make(cmd.frame, cmd.slowFor, cmd.whole)
		if err := d.node.engine.Start(within, d.call); err != nil {
			d.failure = d.node.fail.Named(d.name, err)
			d.call.Release()
			d.call = nil
		}
	}
	for i := range round {
		s.finish(&round[i], inTime)
	}
}

// finish waits for a command if it was sent again, and records its result.
func (s *scatter) finish(d *delayed, inTime bool) {
	var err error = d.failure
	if call := d.call; call != nil {
		var dst any
		if s.dsts != nil {
			dst = s.dsts[d.index]
		}
		if failed := call.Wait(); failed != nil {
			err = d.node.fail.Named(d.name, failed)
		} else {
			err = d.node.answered(&s.cmds[d.index], d.reply(), dst)
		}
		if lent, ok := dst.(*lentFrame); ok {
			*lent = bytes.Clone(*lent) // the call is released below
		}
		s.sent, s.got = s.sent+len(call.Frame), s.got+len(call.Reply())
		call.Release()
		d.call = nil
	}
	if err != nil && inTime && d.detour.how != goEnd && s.delay(*d, err) {
		return
	}
	s.report.note(d.index, err, s.failed)
}

// release returns the memory to the pools.
func (s *scatter) release() {
	for _, p := range s.groups {
		p.release()
	}
	clear(s.groups)
	kept := scatter{refused: s.refused, groups: s.groups[:0]}
	if cap(s.routes) <= keptItems {
		kept.routes = s.routes[:0]
	}
	*s = kept
	scatters.Put(s)
}
