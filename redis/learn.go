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

// The table of commands does not list the commands of modules and of newer servers. A client asks a
// server about each of these once, with COMMAND INFO: whether the command waits, and where its keys are.
// If the server does not say, the client assumes that the command does not wait, and that its first
// argument is its only key.

// A lesson is what a server says about a command that the table does not list.
type lesson struct {
	// info says where the keys are. It is unknownCommand if the server does not say.
	info  *commandInfo
	waits bool
}

// An inquiry is a request about a command that is in progress.
type inquiry struct {
	done chan struct{} // closed when the inquiry has ended

	// Written before done is closed.
	lesson    lesson
	err       error
	abandoned bool // the context of the caller that made the request has ended
}

// lessons are what a client has learned. All methods are safe for concurrent use.
type lessons struct {
	known sync.Map // name of a command: lesson

	mu sync.Mutex
	// Guarded by mu.
	count    int // of known
	underWay map[string]*inquiry
}

const (
	// maxLearned bounds the names that are remembered. They come from the program, which may make them
	// up.
	maxLearned = 10_000
	// maxLesson bounds the size of a reply to COMMAND INFO, in bytes. Larger replies are ignored. Those
	// of Redis have less than 8 KiB.
	maxLesson = 64 << 10
)

// recall returns what was learned of a command.
func (l *lessons) recall(name string) (lesson, bool) {
	known, ok := l.known.Load(name)
	if !ok {
		return lesson{}, false
	}
	return known.(lesson), true
}

// begin returns the inquiry about a command. If mine is true, the caller must make it and call end.
func (l *lessons) begin(name string) (q *inquiry, mine bool) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if q = l.underWay[name]; q != nil {
		return q, false
	}
	q = &inquiry{done: make(chan struct{})}
	if l.underWay == nil {
		l.underWay = make(map[string]*inquiry)
	}
	l.underWay[name] = q
	return q, true
}

// end publishes the result of an inquiry, and stores it if remember is true.
func (l *lessons) end(name string, q *inquiry, remember bool) {
	l.mu.Lock()
	if remember && l.count < maxLearned {
		l.count++
		l.known.Store(name, q.lesson)
	}
	delete(l.underWay, name)
	l.mu.Unlock()
	close(q.done)
}

// learn returns what a server says about a command that the table does not list. Concurrent calls about
// the same command share one request.
func (c *Client) learn(ctx context.Context, name string) (lesson, error) {
	for {
		if known, ok := c.lessons.recall(name); ok {
			return known, nil
		}
		q, mine := c.lessons.begin(name)
		if mine {
			c.inquire(ctx, name, q)
			return q.lesson, q.err
		}
		select {
		case <-q.done:
			if !q.abandoned {
				return q.lesson, q.err
			}
		case <-ctx.Done():
			return lesson{}, c.notAsked(name, context.Cause(ctx))
		}
	}
}

// inquire asks a server about a command.
func (c *Client) inquire(ctx context.Context, name string, q *inquiry) {
	remember := false
	q.lesson = lesson{info: unknownCommand}
	defer func() { c.lessons.end(name, q, remember) }()
	r, err := c.prepare(new(Cmd("COMMAND", "INFO", name)))
	if err != nil {
		q.err = err
		return
	}
	defer func() { r.call.Release() }()
	// Not run: this is no call of the user's, whom an observer would tell of it.
	r.loop.Start = time.Now()
	err = r.node.engine.Do(ctx, r.call)
	if err != nil || isErrorFrame(r.reply()) {
		err = c.settle(ctx, &r, err)
	}
	var refused *ServerError
	switch {
	case errors.As(err, &refused):
		// The user may not ask. The credentials may change, so this is not remembered.
	case err != nil:
		q.err, q.abandoned = c.notAsked(name, err), isOver(ctx)
	default:
		q.lesson, remember = lessonOf(r.reply()), true
	}
}

// isOver reports whether ctx has ended or is about to end: calls may end a little before their deadline.
func isOver(ctx context.Context) bool {
	at, bounded := ctx.Deadline()
	return ctx.Err() != nil || bounded && time.Until(at) < 20*time.Millisecond
}

// notAsked is the error of a command about which no server could be asked.
func (c *Client) notAsked(op string, err error) error {
	outcome := slipstream.OutcomeOf(err)
	if outcome != slipstream.Closed && outcome != slipstream.Overloaded {
		outcome = slipstream.NotSent // what may have been executed is COMMAND INFO
	}
	return c.fail.With(op, outcome, fmt.Errorf("asking the server whether it waits, and for the places of its keys: %w", err))
}

// learned adds what was learned to a command, which must be a copy of the caller's.
func (c *Command) learned(l lesson) {
	if c.info = l.info.ofArguments(c.frame); c.info != unknownCommand {
		c.keyAt, c.keyEnd = 0, 0
		keys := c.info.keysIn(c.frame)
		c.keyAt, c.keyEnd, _ = keys.next()
	}
	if l.waits {
		c.waits, c.blockFor, c.unshared = true, -1, refusal(whyBlocks)
	}
}

// ofArguments returns what is known of the subcommand in an encoded command, or in if there is none.
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

// lessonOf parses the reply to COMMAND INFO of one command. Whatever differs from what Redis sends counts
// as not stated, because some proxies answer with something else.
func lessonOf(frame []byte) lesson {
	var infos []Value
	if len(frame) > maxLesson || decode(frame, &infos) != nil || len(infos) != 1 {
		return lesson{info: unknownCommand}
	}
	info := infos[0]
	l := lesson{info: infoOf(info), waits: len(info.Elems) > 2 && info.Elems[2].has("blocking")}
	if len(info.Elems) > 9 {
		l.info = withSubcommands(l.info, info.Elems[9].Elems)
	}
	return l
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
// INFO, or unknownCommand if that does not say. Servers older than Redis 7.0 do not send
// specifications; they say of commands whose keys are not at fixed places that the keys move.
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

// rangeSpec returns the specification of keys at fixed places.
func rangeSpec(first, last, step int64) (keySpec, bool) {
	const most = 127
	if first == last {
		step = 1
	}
	if first < 1 || first > most || step < 1 || step > most || last < -most || last > most || last >= 0 && last < first {
		return keySpec{}, false
	}
	return keySpec{first: int8(first), last: int8(last), step: int8(step)}, true
}

// specsOf returns the specifications that say exactly where keys are, in ascending order, up to the
// first one that does not. All keys have one slot, so one key is enough to find the node.
func specsOf(list []Value) (specs []keySpec) {
	end := int8(0)
	for _, v := range list {
		spec, ok := specOf(v)
		if !ok || spec.first <= end {
			break
		}
		specs = append(specs, spec)
		if end = spec.last; spec.counted || spec.last < 0 {
			break // what follows could be anywhere
		}
	}
	return specs
}

// specOf returns a specification that says exactly where keys are.
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

// field returns a field of a map, or of a list of names and values.
func (v Value) field(name string) Value {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if v.Elems[i].Text == name {
			return v.Elems[i+1]
		}
	}
	return Value{}
}

// has reports whether a list has a word.
func (v Value) has(word string) bool {
	for _, e := range v.Elems {
		if e.Text == word {
			return true
		}
	}
	return false
}
