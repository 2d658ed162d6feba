package redis

import (
	"context"
	"errors"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// Some commands concern several nodes of a cluster. Those with keys of several slots are cut, one
// command for each slot; those about all data, or about the servers themselves, are sent to each
// master or to each node. What becomes of the replies is a property of the command: see policy.go.

var errScan = errors.New("SCAN walks over the keys of one node; use Client.Scan, or the Client of a node")

// spreads reports whether the command may concern several nodes.
func (in *commandInfo) spreads() bool { return in.request != requestOne || in.manyKeys() }

// everyNode reports whether the command is sent to each master, or to each node.
func (in *commandInfo) everyNode() bool {
	return (in.request == requestAllShards || in.request == requestAllNodes) && in.response != responseSpecial
}

// apart reports whether a command is several commands in a cluster, so that Do must make them.
func (c *Client) apart(cmd *Command) bool {
	if !c.sharded() || cmd.err != nil || cmd.info == nil || !cmd.info.spreads() {
		return false
	}
	if cmd.info.everyNode() {
		return true
	}
	_, err := slotOf(cmd.info, cmd.frame)
	return err != nil && c.splits(cmd.info)
}

// splits reports whether a command with keys of several slots is cut into several commands.
func (c *Client) splits(in *commandInfo) bool {
	return in.request == requestMultiShard && (in.response != responseAllSucceeded || c.router.split)
}

// spread makes the call of a command that concerns several nodes. It returns false if the call is
// one that a single node executes.
func (c *Client) spread(ctx context.Context, r *request) (done bool, err error) {
	switch {
	case r.info.everyNode():
		return true, c.observed(ctx, r, c.onEveryNode(ctx, r))
	case r.info.request == requestSpecial && r.name == "SCAN":
		return true, c.fail.NotSent(r.name, errScan)
	}
	if _, err := slotOf(r.info, r.call.Frame); err == nil {
		return false, nil
	} else if !c.splits(r.info) {
		return true, c.fail.NotSent(r.name, err)
	}
	return true, c.observed(ctx, r, c.onEverySlot(ctx, r))
}

// observed reports a call of several commands to the observers.
func (c *Client) observed(ctx context.Context, r *request, err error) error {
	if c.hooks.Observing() {
		c.hooks.Observe(ctx, Observation{
			Op: r.name, Addr: c.fail.Addr, Start: r.loop.Start, Requests: 1, Attempts: 1,
			RequestBytes: len(r.call.Frame), ReplyBytes: len(r.joined), Err: err,
		})
	}
	return err
}

// onEveryNode sends a command to each master, or to each node, and joins the replies.
func (c *Client) onEveryNode(ctx context.Context, r *request) error {
	nodes := c.router.each(r.info.request == requestAllNodes)
	parts, errs := make([]request, len(nodes)), make([]error, len(nodes))
	for i, n := range nodes {
		p := &parts[i]
		*p = request{node: n, info: r.info, name: r.name, repeatable: r.repeatable}
		p.loop.Start = r.loop.Start
		p.make(r.call.Frame, r.call.SlowFor, false)
		errs[i] = n.engine.Start(ctx, p.call)
	}
	var j joint
	for i, n := range nodes {
		p := &parts[i]
		if errs[i] == nil {
			errs[i] = p.call.Wait()
		}
		if err := c.viewOf(n).settle(ctx, p, errs[i]); err != nil {
			j.fail(i, err)
		} else {
			j.frames = append(j.frames, p.reply())
		}
	}
	err := j.join(c, r, nil)
	for i := range parts {
		parts[i].call.Release()
	}
	return err
}

// onEverySlot cuts a command into one for each slot of its keys, and joins the replies.
func (c *Client) onEverySlot(ctx context.Context, r *request) error {
	cmds, groups := cutBySlot(r.info, r.call.Frame)
	frames, dsts := make([]rawFrame, len(cmds)), make([]any, len(cmds))
	for i := range cmds {
		dsts[i] = &frames[i]
	}
	var j joint
	_ = c.doAcross(ctx, cmds, dsts, func(i int, err error) { j.fail(groups[i][0], err) })
	for _, frame := range frames {
		j.frames = append(j.frames, frame)
	}
	return j.join(c, r, groups)
}

// cutBySlot cuts an encoded command into one for each slot of its keys. All its arguments are keys,
// or keys with the same number of values after each. Groups are the positions of the keys of each
// command.
func cutBySlot(in *commandInfo, frame []byte) (cmds []Command, groups [][]int) {
	args := encodedArgs{frame}
	args.header()
	args.next() // the name
	step := max(1, int(in.specs[0].step))
	parts, groupOf := [][]string(nil), make(map[int]int)
	for i := 0; ; i++ {
		arg, ok := args.next()
		if !ok {
			break
		}
		s := slot.OfBytes(arg)
		g, known := groupOf[s]
		if !known {
			g = len(parts)
			groupOf[s], parts, groups = g, append(parts, nil), append(groups, nil)
		}
		parts[g], groups[g] = append(parts[g], string(arg)), append(groups[g], i)
		for range step - 1 {
			value, _ := args.next()
			parts[g] = append(parts[g], string(value))
		}
	}
	cmds = make([]Command, len(parts))
	for g, part := range parts {
		cmds[g].name = in.name
		cmds[g].encodeStrings(nil, in, part)
	}
	return cmds, groups
}

// A joint is the results of the commands that one command has become.
type joint struct {
	frames  [][]byte
	failed  int
	at      int // of failure: the position of the node or of the key
	failure *slipstream.Error
}

// fail notes a command that failed.
func (j *joint) fail(at int, err error) {
	j.failed++
	failure, ok := errors.AsType[*slipstream.Error](err)
	if ok && (j.failure == nil || at < j.at) {
		j.at, j.failure = at, failure
	}
}

// join makes one reply of all. Groups are the positions of the keys of each command, or nil.
func (j *joint) join(c *Client, r *request, groups [][]int) error {
	oneIsEnough := r.info.response == responseOneSucceeded && len(j.frames) > 0
	if j.failed > 0 && !oneIsEnough {
		outcome := j.failure.Outcome
		if len(j.frames) > 0 || outcome == slipstream.Executed {
			outcome = slipstream.MaybeExecuted // some have been executed, and some may not
		}
		return &slipstream.Error{Op: r.name, Addr: j.failure.Addr, Outcome: outcome, Err: &BatchError{Index: j.at, Failed: j.failed, Err: j.failure.Err}}
	}
	var err error
	if r.joined, err = joinReplies(r.info.response, j.frames, groups); err != nil {
		return c.fail.Executed(r.name, err)
	}
	return nil
}
