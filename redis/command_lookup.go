package redis

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream"
)

// The table of commands does not list the commands of modules and of newer servers. A client looks up
// each of these once, with COMMAND INFO: whether the command blocks, and where its keys are. Concurrent
// callers share one lookup; a future and a completion wait for it on a dedicated goroutine. The details
// of up to 10,000 commands are cached. A reply of more than 64 KiB, positions above 127, and
// specifications that Redis would not send are ignored.
//
// If the server does not say, or if the user may not execute COMMAND INFO, the client assumes that
// the command does not block and that its first argument is its only key, and follows a redirect to
// any slot. It ignores the rest of the reply: such a command is retried as a write, is not sent to
// replicas, and has no policy.

// commandDetails is what a server says about a command that the table does not list.
type commandDetails struct {
	// info says where the keys are. It is unknownCommand if the server does not say.
	info  *commandInfo
	waits bool
}

// A commandLookup is a lookup of a command that is in flight.
type commandLookup struct {
	done chan struct{} // closed when the lookup has ended

	// Written before done is closed.
	details  commandDetails
	err      error
	canceled bool // the context of the caller that sent the request has ended
}

// commandInfoCache holds the details of commands that were looked up, and the lookups in flight.
// All methods are safe for concurrent use.
type commandInfoCache struct {
	cached sync.Map // name of a command: commandDetails

	mu sync.Mutex
	// Guarded by mu.
	count    int // of cached
	inFlight map[string]*commandLookup
}

const (
	// maxCachedCommands bounds the number of names in a commandInfoCache. The names come from the
	// program, which may make them up.
	maxCachedCommands = 10_000
	// maxCommandInfoReply bounds the size of a reply to COMMAND INFO, in bytes. Larger replies are
	// ignored. Those of Redis are smaller than 8 KiB.
	maxCommandInfoReply = 64 << 10
)

// get returns the cached details of a command.
func (c *commandInfoCache) get(name string) (commandDetails, bool) {
	cached, ok := c.cached.Load(name)
	if !ok {
		return commandDetails{}, false
	}
	return cached.(commandDetails), true
}

// join returns the lookup in flight of a command. If there is none, join starts one and reports true:
// the caller must then query a server and call finish.
func (c *commandInfoCache) join(name string) (l *commandLookup, started bool) {
	c.mu.Lock()
	defer c.mu.Unlock()
	if l = c.inFlight[name]; l != nil {
		return l, false
	}
	l = &commandLookup{done: make(chan struct{})}
	if c.inFlight == nil {
		c.inFlight = make(map[string]*commandLookup)
	}
	c.inFlight[name] = l
	return l, true
}

// finish publishes the result of a lookup, and caches it if store is true.
func (c *commandInfoCache) finish(name string, l *commandLookup, store bool) {
	c.mu.Lock()
	if store && c.count < maxCachedCommands {
		c.count++
		c.cached.Store(name, l.details)
	}
	delete(c.inFlight, name)
	c.mu.Unlock()
	close(l.done)
}

// lookUpCommand returns what a server says about a command that the table does not list. Concurrent
// lookups of the same command share one request.
func (c *Client) lookUpCommand(ctx context.Context, name string) (commandDetails, error) {
	for {
		if details, ok := c.infoCache.get(name); ok {
			return details, nil
		}
		l, started := c.infoCache.join(name)
		if started {
			c.queryCommand(ctx, name, l)
			return l.details, l.err
		}
		select {
		case <-l.done:
			if !l.canceled {
				return l.details, l.err
			}
		case <-ctx.Done():
			return commandDetails{}, c.lookupError(name, context.Cause(ctx))
		}
	}
}

// queryCommand queries a server about a command and finishes the lookup.
func (c *Client) queryCommand(ctx context.Context, name string, l *commandLookup) {
	store := false
	l.details = commandDetails{info: unknownCommand}
	defer func() { c.infoCache.finish(name, l, store) }()
	r, err := c.prepare(new(Cmd("COMMAND", "INFO", name)))
	if err != nil {
		l.err = err
		return
	}
	defer func() { r.call.Release() }()
	// This does not use run, which would report the request to the observer as a call of the user.
	r.loop.Start = time.Now()
	err = r.node.engine.Do(ctx, r.call)
	if err != nil || isErrorFrame(r.reply()) {
		err = c.settle(ctx, &r, err)
	}
	var refused *ServerError
	switch {
	case errors.As(err, &refused):
		// The user may not execute COMMAND INFO. The credentials may change, so this is not cached.
	case err != nil:
		l.err, l.canceled = c.lookupError(name, err), nearlyDone(ctx)
	default:
		l.details, store = parseCommandDetails(r.reply()), true
	}
}

// nearlyDone reports whether ctx has ended or is about to end: calls may end a little before their deadline.
func nearlyDone(ctx context.Context) bool {
	at, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && time.Until(at) < 20*time.Millisecond
}

// lookupError returns the error of a command whose lookup failed.
func (c *Client) lookupError(op string, err error) error {
	outcome := slipstream.OutcomeOf(err)
	if outcome != slipstream.Closed && outcome != slipstream.Overloaded {
		outcome = slipstream.NotSent // only COMMAND INFO may have been executed
	}
	return c.fail.With(op, outcome, fmt.Errorf("looking up the command with COMMAND INFO: %w", err))
}

// applyDetails adds the details of its lookup to a command, which must be a copy of the caller's.
func (c *Command) applyDetails(d commandDetails) {
	if c.info = d.info.ofArguments(c.frame); c.info != unknownCommand {
		c.keyAt, c.keyEnd = 0, 0
		keys := c.info.keysIn(c.frame)
		c.keyAt, c.keyEnd, _ = keys.next()
	}
	if d.waits {
		c.waits, c.blockFor, c.unshared = true, -1, refusal(whyBlocks)
	}
}

// ofArguments returns the info of the subcommand in an encoded command, or in if there is none.
func (in *commandInfo) ofArguments(frame []byte) *commandInfo {
	if in.subcommands == nil {
		return in
	}
	args := encodedArgs{frame}
	if _, ok := args.header(); ok {
		args.next() // the name
		if first, ok := args.next(); ok {
			if sub := find(in.subcommands, string(first)); sub != nil {
				return sub
			}
		}
	}
	return in
}

// parseCommandDetails parses the reply to COMMAND INFO of one command. Anything that Redis would not
// send is ignored, because some proxies send other replies.
func parseCommandDetails(frame []byte) commandDetails {
	var infos []Value
	if len(frame) > maxCommandInfoReply || decode(frame, &infos) != nil || len(infos) != 1 {
		return commandDetails{info: unknownCommand}
	}
	info := infos[0]
	d := commandDetails{info: infoOf(info), waits: len(info.Elems) > 2 && info.Elems[2].has("blocking")}
	if len(info.Elems) > 9 {
		d.info = withSubcommands(d.info, info.Elems[9].Elems)
	}
	return d
}

// withSubcommands returns in with the subcommands that a server lists.
func withSubcommands(in *commandInfo, listed []Value) *commandInfo {
	if len(listed) == 0 {
		return in
	}
	parent := *in
	parent.subcommands = make(map[string]*commandInfo, len(listed))
	for _, sub := range listed {
		if len(sub.Elems) == 0 {
			continue
		}
		if _, name, ok := strings.Cut(sub.Elems[0].Text, "|"); ok && len(name) <= longestName {
			parent.subcommands[strings.ToUpper(name)] = infoOf(sub)
		}
	}
	return &parent
}

// infoOf returns where the keys of a command are according to an element of the reply to COMMAND
// INFO, or unknownCommand if the element does not say. Servers older than Redis 7.0 do not send key
// specifications; they report commands whose keys are not at fixed positions as having movable keys.
func infoOf(info Value) *commandInfo {
	if len(info.Elems) < 6 {
		return unknownCommand
	}
	var specs []keySpec
	switch first, last, step := info.Elems[3], info.Elems[4], info.Elems[5]; {
	case info.Elems[2].has("movablekeys"):
		if len(info.Elems) > 8 {
			specs = specsOf(info.Elems[8].Elems)
		}
	case first.Kind == Integer && first.Int == 0:
		return &commandInfo{name: unknownCommand.name}
	default:
		if spec, ok := rangeSpec(first.Int, last.Int, step.Int); ok {
			specs = []keySpec{spec}
		}
	}
	if specs == nil {
		return unknownCommand
	}
	in := &commandInfo{name: unknownCommand.name}
	if !specs[0].counted {
		in.key = specs[0].first
	}
	if len(specs) > 1 || specs[0].counted || specs[0].last != specs[0].first {
		in.specs = specs
	}
	return in
}

// rangeSpec returns the specification of keys at fixed positions, and whether it is valid.
func rangeSpec(first, last, step int64) (keySpec, bool) {
	const maxPosition = 127
	if first == last {
		step = 1
	}
	if first < 1 || first > maxPosition || step < 1 || step > maxPosition ||
		last < -maxPosition || last > maxPosition || last >= 0 && last < first {
		return keySpec{}, false
	}
	return keySpec{first: int8(first), last: int8(last), step: int8(step)}, true
}

// specsOf returns the specifications in list that say exactly where keys are, in ascending order, up to
// the first one that does not. All keys are in one slot, so one key is enough to find the node.
func specsOf(list []Value) (specs []keySpec) {
	end := int8(0)
	for _, v := range list {
		spec, ok := specOf(v)
		if !ok || spec.first <= end {
			break
		}
		specs = append(specs, spec)
		if end = spec.last; spec.counted || spec.last < 0 {
			break // keys that follow could be anywhere
		}
	}
	return specs
}

// specOf parses a key specification. It reports false if v does not say exactly where keys are.
func specOf(v Value) (keySpec, bool) {
	begin, find := v.field("begin_search"), v.field("find_keys")
	if begin.field("type").Text != "index" || v.field("flags").has("incomplete") {
		return keySpec{}, false
	}
	first, how := begin.field("spec").field("index").Int, find.field("spec")
	switch find.field("type").Text {
	case "range":
		last := how.field("lastkey").Int
		if last >= 0 {
			last = min(last, 127) + first
		}
		spec, ok := rangeSpec(first, last, how.field("keystep").Int)
		return spec, ok && how.field("limit").Int <= 1
	case "keynum":
		spec, ok := rangeSpec(first, first, 1)
		spec = keySpec{first: spec.first, counted: true}
		return spec, ok && how.field("keynumidx").Int == 0 && how.field("firstkey").Int == 1 && how.field("keystep").Int == 1
	}
	return keySpec{}, false
}

// field returns the value of a field of a map, or of a list of alternating names and values.
func (v Value) field(name string) Value {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if v.Elems[i].Text == name {
			return v.Elems[i+1]
		}
	}
	return Value{}
}

// has reports whether a list contains a word.
func (v Value) has(word string) bool {
	for _, e := range v.Elems {
		if e.Text == word {
			return true
		}
	}
	return false
}
