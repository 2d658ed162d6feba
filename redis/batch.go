package redis

import (
	"context"
	"errors"
	"fmt"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// A Batch is a list of commands that are sent together: contiguously on one
// connection, and either all or none of them if there is no room. It is not a
// transaction: other clients' commands may be executed in between. The zero Batch
// is empty. It is used by one goroutine at a time and may be sent again.
type Batch struct {
	commands []Command
	dsts     []any
	errs     []error // errors of the last send; nil if there were none
	// frames holds the newest commands of AddCmd and AddStrings. When it is full, the
	// commands keep it and a new one replaces it.
	frames []byte
}

// A batch that is emptied keeps at most this many bytes of frames.
const keptFrames = 256 << 10

// Add adds a command whose reply is decoded into dst as [Client.Do] does.
func (b *Batch) Add(dst any, cmd Command) {
	b.commands = append(b.commands, cmd)
	b.dsts = append(b.dsts, dst)
}

// AddCmd adds the command that [Cmd] makes of a name and arguments, without a separate
// allocation.
func (b *Batch) AddCmd(dst any, name string, args ...any) {
	c := b.next(dst, name)
	b.room(sizeOf(name, args))
	b.frames = c.encode(b.frames, b.known(name), args)
}

// AddStrings is like [Batch.AddCmd] for arguments that are all strings. They do not have to be
// converted to interfaces, each of which would be an allocation.
func (b *Batch) AddStrings(dst any, name string, args ...string) {
	c := b.next(dst, name)
	size := 32 + len(name)
	for _, arg := range args {
		size += resp.SizeBulk(len(arg))
	}
	b.room(size)
	b.frames = c.encodeStrings(b.frames, b.known(name), args)
}

// next makes room for a command.
func (b *Batch) next(dst any, name string) *Command {
	b.commands = append(b.commands, Command{name: name})
	b.dsts = append(b.dsts, dst)
	return &b.commands[len(b.commands)-1]
}

// known returns the info of a command. It first compares the name with that of the
// preceding command, which is usually the same: a lookup for each command would be a tenth
// of the cost of a batch.
func (b *Batch) known(name string) *commandInfo {
	if n := len(b.commands); n > 1 {
		if info := b.commands[n-2].info; info != nil && info != unknownCommand && info.name == name && info.subcommands == nil {
			return info
		}
	}
	return nil
}

// room makes room for size bytes.
func (b *Batch) room(size int) {
	if cap(b.frames)-len(b.frames) < size {
		b.frames = make([]byte, 0, max(size, min(max(2*cap(b.frames), 1<<10), keptFrames)))
	}
}

// Len returns the number of commands.
func (b *Batch) Len() int { return len(b.commands) }

// Reset empties the batch and keeps its memory.
func (b *Batch) Reset() {
	clear(b.commands)
	clear(b.dsts)
	b.commands, b.dsts, b.errs = b.commands[:0], b.dsts[:0], nil
	if b.frames = b.frames[:0]; cap(b.frames) > keptFrames {
		b.frames = nil
	}
}

// Err returns the error of the i-th command from the last time the batch was sent.
func (b *Batch) Err(i int) error {
	if b.errs == nil {
		return nil
	}
	return b.errs[i]
}

// A BatchError says which of several commands failed first.
type BatchError struct {
	// Index is the index of that command, starting at 0.
	Index int
	// Failed is the number of commands that failed.
	Failed int
	// Err is the error of that command.
	Err error
}

// Error names the command by its position.
func (e *BatchError) Error() string {
	return fmt.Sprintf("command %d (%d failed): %v", e.Index, e.Failed, e.Err)
}

// Unwrap returns the error of the command.
func (e *BatchError) Unwrap() error { return e.Err }

// DoBatch sends a batch and waits for all replies. The error is a *[BatchError] with the error of
// the first command that failed; [Batch.Err] returns the errors of the others. A batch is sent
// again only if no part of it was sent.
func (c *Client) DoBatch(ctx context.Context, b *Batch) error {
	b.errs = nil
	if c.only != nil { // a separate function, which does not escape
		return c.doAllOn(ctx, c.only, b.commands, b.dsts, func(i int, err error) { b.fail(i, err) })
	}
	return c.doAcross(ctx, b.commands, b.dsts, b.fail)
}

// fail records the error of the i-th command.
func (b *Batch) fail(i int, err error) {
	if b.errs == nil {
		b.errs = make([]error, len(b.commands))
	}
	b.errs[i] = err
}

// manyAtOnce is the number of commands that DoMany keeps in flight. More would gain nothing and
// would fill the queue that other callers share.
const manyAtOnce = 4096

// DoMany sends commands together and waits for all replies. The reply to cmds[i] is decoded into
// dsts[i]; dsts may be nil if the replies are not needed. The error is a *[BatchError] with the
// error of the first command that failed; the other commands are sent nevertheless. Use a [Batch]
// to get the error of each command.
func (c *Client) DoMany(ctx context.Context, cmds []Command, dsts []any) error {
	if dsts != nil && len(dsts) != len(cmds) {
		return c.fail.NotSent("DoMany", fmt.Errorf("%d destinations for %d commands", len(dsts), len(cmds)))
	}
	most := manyAtOnce
	if c.opts.MaxCalls > 0 {
		most = max(1, min(most, c.opts.MaxCalls/max(c.opts.Sockets, 1)/2))
	}
	var first *BatchError
	for from := 0; from < len(cmds); from += most {
		to := min(from+most, len(cmds))
		var part []any
		if dsts != nil {
			part = dsts[from:to]
		}
		var e *BatchError
		if err := c.doAll(ctx, cmds[from:to], part, nil); errors.As(err, &e) {
			if first == nil {
				e.Index += from
				first = e
			} else {
				first.Failed += e.Failed
			}
		}
	}
	if first != nil {
		return first
	}
	return nil
}
