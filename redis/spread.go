package redis

import (
	"context"
	"errors"
	"slices"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// Some commands affect several nodes of a cluster. A command with keys in different slots is split
// into one command for each slot. A command about all data, or about the servers themselves, is
// sent to each master or to each node, and retries go only to the same one. The replies are merged
// into one reply (join.go), so methods decode it as usual. How they are merged is a property of the
// command; see policy.go.

var errScan = errors.New("SCAN iterates over the keys of one node; use Client.Scan, or send SCAN with the client that Client.Node returns")

// spreads reports whether the command may affect several nodes.
func (in *commandInfo) spreads() bool { return in.request != requestOne || in.manyKeys() }

// everyNode reports whether the command is sent to each master, or to each node.
func (in *commandInfo) everyNode() bool {
	return (in.request == requestAllShards || in.request == requestAllNodes) && in.response != responseSpecial
}

// apart reports whether a command must be sent to several nodes, which only run can do.
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

// splits reports whether a command is split if its keys are in different slots.
func (c *Client) splits(in *commandInfo) bool {
	return in.request == requestMultiShard && (in.response != responseAllSucceeded || c.router.split)
}

// spread executes a command that affects several nodes. If a single node can execute the command,
// spread does nothing and returns false.
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

// observed reports a call that was sent to several nodes to the observers.
func (c *Client) observed(ctx context.Context, r *request, err error) error {
	if c.hooks.Observing() {
		received := 0
		if r.joined != nil {
			received = len(r.joined.reply)
		}
		c.hooks.Observe(ctx, Observation{
			Op: r.name, Addr: c.fail.Addr, Start: r.loop.Start, Requests: 1, Attempts: 1,
			RequestBytes: len(r.call.Frame), ReplyBytes: received, Err: err,
		})
	}
	return err
}

// onEveryNode sends a command to each master, or to each node, and merges the replies.
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
	j := new(joint)
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

// onEverySlot splits a command into one for each slot of its keys, and merges the replies.
func (c *Client) onEverySlot(ctx context.Context, r *request) error {
	cmds, groups := cutBySlot(r.info, r.call.Frame)
	frames, dsts := make([]lentFrame, len(cmds)), make([]any, len(cmds))
	for i := range cmds {
		dsts[i] = &frames[i]
	}
	j := &joint{frames: make([][]byte, 0, len(frames))}
	s := c.scatterOf(cmds, dsts, func(i int, err error) { j.fail(groups[i][0], err) })
	defer s.release() // after the replies were joined
	_ = s.run(ctx)
	for _, frame := range frames {
		if len(frame) > 0 { // if empty, the command failed
			j.frames = append(j.frames, frame)
		}
	}
	return j.join(c, r, groups)
}

// keyUnit is a key of an encoded command with the values that follow it.
type keyUnit struct {
	from, to int // its range in the frame
	next     int // the next unit of its slot, or -1
}

// slotUnits are the units in one slot.
type slotUnits struct{ slot, first, last, count int }

// fewSlots is the maximum number of keys whose slots are found by a linear search instead of a map.
const fewSlots = 64

// unitsBySlot returns the keys of an encoded command, grouped by slot. All arguments of the command
// must be keys, or keys each followed by step-1 values. The slots are in the order of their first
// keys.
func unitsBySlot(frame []byte, step int) ([]keyUnit, []slotUnits) {
	args := encodedArgs{frame}
	words, _ := args.header()
	args.next() // the name
	n := (words - 1) / step
	units, slots := make([]keyUnit, 0, n), make([]slotUnits, 0, min(n, slot.Count))
	var groupOf map[int]int
	if n > fewSlots {
		groupOf = make(map[int]int, min(n, slot.Count))
	}
	for {
		u := keyUnit{from: len(frame) - len(args.rest), next: -1}
		key, ok := args.next()
		if !ok {
			return units, slots
		}
		for range step - 1 {
			args.next()
		}
		u.to = len(frame) - len(args.rest)
		s, g := slot.OfBytes(key), -1
		if groupOf == nil {
			g = slices.IndexFunc(slots, func(of slotUnits) bool { return of.slot == s })
		} else if known, ok := groupOf[s]; ok {
			g = known
		}
		if g < 0 {
			if groupOf != nil {
				groupOf[s] = len(slots)
			}
			slots = append(slots, slotUnits{slot: s, first: len(units), last: len(units), count: 1})
		} else {
			units[slots[g].last].next = len(units)
			slots[g].last = len(units)
			slots[g].count++
		}
		units = append(units, u)
	}
}

// cutBySlot splits an encoded command into one command for each slot of its keys. All arguments of
// the command must be keys, or keys each followed by the same number of values. Groups contains the
// positions of the keys of each command.
func cutBySlot(in *commandInfo, frame []byte) (cmds []Command, groups [][]int) {
	step := max(1, int(in.specs[0].step))
	units, slots := unitsBySlot(frame, step)
	cmds, groups = make([]Command, len(slots)), make([][]int, len(slots))
	positions := make([]int, 0, len(units))
	const head = 32 // bytes of the head of a command, without its name
	b := make([]byte, 0, len(frame)+len(slots)*(head+len(in.name)))
	for g, s := range slots {
		begin, first := len(b), len(positions)
		b = resp.AppendArrayHeader(b, 1+step*s.count)
		b = resp.AppendBulkString(b, in.name)
		args := len(b) - begin
		for i := s.first; i >= 0; i = units[i].next {
			b = append(b, frame[units[i].from:units[i].to]...)
			positions = append(positions, i)
		}
		groups[g] = positions[first:len(positions):len(positions)]
		cmds[g].name, cmds[g].frame = in.name, b[begin:len(b):len(b)]
		cmds[g].classify(in, args)
	}
	return cmds, groups
}

// A joint collects the results of the commands that one command was split into.
type joint struct {
	frames  [][]byte
	failed  int
	doubt   bool // a command that failed was executed, or may have been
	at      int  // the position of the node or key that failed
	failure *slipstream.Error
	reply   []byte // the merged reply
}

// fail records a command that failed.
func (j *joint) fail(at int, err error) {
	j.failed++
	failure, ok := errors.AsType[*slipstream.Error](err)
	if !ok {
		failure = &slipstream.Error{Outcome: slipstream.OutcomeOf(err), Err: err}
	}
	j.doubt = j.doubt || failure.Outcome == slipstream.MaybeExecuted || failure.Outcome == slipstream.Executed
	if j.failure == nil || at < j.at {
		j.at, j.failure = at, failure
	}
}

// join merges the replies into the reply of r. Groups contains the positions of the keys of each
// command, or is nil.
func (j *joint) join(c *Client, r *request, groups [][]int) error {
	oneIsEnough := r.info.response == responseOneSucceeded && len(j.frames) > 0
	if j.failed > 0 && !oneIsEnough {
		outcome := j.failure.Outcome
		if len(j.frames) > 0 || j.doubt {
			outcome = slipstream.MaybeExecuted // some commands were executed, and others perhaps not
		}
		return &slipstream.Error{Op: r.name, Addr: j.failure.Addr, Outcome: outcome, Err: &BatchError{Index: j.at, Failed: j.failed, Err: j.failure.Err}}
	}
	var err error
	if j.reply, err = joinReplies(r.info.response, j.frames, groups); err != nil {
		return c.fail.Executed(r.name, err)
	}
	j.frames, r.joined = nil, j // the memory of the frames is released
	return nil
}
