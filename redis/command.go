package redis

import (
	"bytes"
	"fmt"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// A Command is a request in its encoded form. It is immutable: it may be kept, copied, and sent any
// number of times, and by several goroutines concurrently.
type Command struct {
	name  string
	frame []byte // never written to after Cmd
	info  *commandInfo
	err   error // of an argument; reported when the command is sent

	keyAt, keyEnd int // the first key is frame[keyAt:keyEnd]; keyAt is 0 if there is none

	// unshared is the reason why the command cannot use a shared connection, or nil if it can. A
	// command that blocks, for blockFor or, if that is negative, forever, gets a dedicated
	// connection. For an unknown command, the server is queried.
	unshared error
	waits    bool
	blockFor time.Duration

	slowFor    time.Duration
	idempotent bool
	whole      bool    // part of a transaction
	script     *Script // the script whose source the command contains
}

// Cmd makes a command from a name and its arguments. A subcommand is an argument:
//
//	redis.Cmd("CLIENT", "LIST", "TYPE", "normal")
//
// Arguments may be strings, []byte, integers, floats, bools (1 and 0), types based on these, and
// any value that implements encoding.TextMarshaler or encoding.BinaryMarshaler. They are copied, so
// the caller may change them afterwards. If an argument has another type, every use of the command
// fails with an error that names its position.
func Cmd(name string, args ...any) Command {
	c := Command{name: name}
	c.encode(make([]byte, 0, sizeOf(name, args)), nil, args)
	return c
}

// sizeOf estimates the encoded size of a command, so that a frame is allocated once.
func sizeOf(name string, args []any) int {
	size := 32 + len(name)
	for _, arg := range args {
		size += argumentSize(arg)
	}
	return size
}

// encode appends the command to b and returns b. Info is that of a command with the same name, or
// nil if it is to be looked up.
func (c *Command) encode(b []byte, info *commandInfo, args []any) []byte {
	begin := len(b)
	b = resp.AppendArrayHeader(b, 1+len(args))
	b = resp.AppendBulkString(b, c.name)
	from := len(b) - begin
	for i, arg := range args {
		var err error
		if b, err = appendArgument(b, arg); err != nil {
			c.err = fmt.Errorf("argument %d %w", i+1, err)
			c.info = unknownCommand
			return b[:begin]
		}
	}
	c.frame = b[begin:len(b):len(b)]
	c.classify(info, from)
	return b
}

// encodeStrings is like encode for arguments that are all strings. It lets none of them escape.
func (c *Command) encodeStrings(b []byte, info *commandInfo, args []string) []byte {
	begin := len(b)
	b = resp.AppendArrayHeader(b, 1+len(args))
	b = resp.AppendBulkString(b, c.name)
	from := len(b) - begin
	for _, arg := range args {
		b = resp.AppendBulkString(b, arg)
	}
	c.frame = b[begin:len(b):len(b)]
	c.classify(info, from)
	return b
}

// argumentSize estimates the encoded size of an argument.
func argumentSize(arg any) int {
	switch v := arg.(type) {
	case string:
		return resp.SizeBulk(len(v))
	case []byte:
		return resp.SizeBulk(len(v))
	}
	return 32
}

// classify sets the fields that follow from the name and the arguments. The arguments start at
// frame[from].
func (c *Command) classify(info *commandInfo, from int) {
	if c.info = info; info == nil {
		c.info = lookup(c.name, encodedArgs{c.frame[from:]})
	}
	switch {
	case c.name == "":
		c.err = fmt.Errorf("the command has no name")
		return
	case c.info != unknownCommand:
		c.name = c.info.name
	}
	c.slowFor = c.info.slowFor
	switch {
	case c.info.refusal != "":
		c.unshared = refusal(c.info.refusal)
	case c.info.wait != waitsNot:
		if c.blockFor, c.waits = waitOf(c.info.wait, encodedArgs{c.frame[from:]}); c.waits {
			c.unshared = refusal(whyBlocks)
		}
	case c.info.flags&flagSlowArgument != 0:
		args := encodedArgs{c.frame[from:]}
		args.next() // SLEEP
		if arg, ok := args.next(); ok {
			c.slowFor = secondsOf(arg)
		}
	}
	c.findKey(from)
}

func refusal(why string) error { return fmt.Errorf("%w: %s", ErrShared, why) }

// findKey finds the first key.
func (c *Command) findKey(from int) {
	if c.info.key == 0 && (c.info.specs != nil || c.info.options != nil) {
		keys := c.info.keysIn(c.frame)
		c.keyAt, c.keyEnd, _ = keys.next()
		return
	}
	args := encodedArgs{c.frame[from:]}
	for i := int8(1); i <= c.info.key; i++ {
		arg, ok := args.next()
		if !ok {
			return
		}
		if i == c.info.key {
			c.keyEnd = len(c.frame) - len(args.rest) - 2
			c.keyAt = c.keyEnd - len(arg)
		}
	}
}

// key returns the first key, or nil if there is none.
func (c *Command) key() []byte { return c.frame[c.keyAt:c.keyEnd] }

// waitOf returns how long a command asks the server to wait; the duration is negative if that is
// forever. An argument that is not a valid time is left for the server to reject.
func waitOf(at waitArgument, args encodedArgs) (d time.Duration, waits bool) {
	if at == waitsOption {
		return blockOption(args)
	}
	arg, _ := args.next()
	for at == waitsLast {
		next, ok := args.next()
		if !ok {
			break
		}
		arg = next
	}
	return waitTime(arg, time.Second), true
}

// waitTime parses a time; 0 means forever.
func waitTime(arg []byte, unit time.Duration) time.Duration {
	n, err := strconv.ParseFloat(string(arg), 64)
	if err != nil || !(n > 0) {
		return -1
	}
	return time.Duration(min(n, 1e9) * float64(unit))
}

// blockOption looks for BLOCK before STREAMS, which is followed by keys.
func blockOption(args encodedArgs) (d time.Duration, waits bool) {
	skip := 0 // arguments that are values, not names
	for {
		arg, ok := args.next()
		switch {
		case !ok:
			return 0, false
		case skip > 0:
			skip--
		case bytes.EqualFold(arg, []byte("STREAMS")):
			return 0, false
		case bytes.EqualFold(arg, []byte("BLOCK")):
			arg, _ = args.next()
			return waitTime(arg, time.Millisecond), true
		case bytes.EqualFold(arg, []byte("GROUP")):
			skip = 2
		case bytes.EqualFold(arg, []byte("COUNT")):
			skip = 1
		}
	}
}

// secondsOf parses the argument of DEBUG SLEEP and adds half of it, because a server under load
// wakes up late.
func secondsOf(arg []byte) time.Duration {
	seconds, err := strconv.ParseFloat(string(arg), 64)
	if err != nil || !(seconds > 0) {
		return 0
	}
	return time.Duration(min(seconds, 1e6) * 1.5 * float64(time.Second))
}

// Name returns the name of the command in upper case, with its subcommand if
// the client knows it.
func (c Command) Name() string { return c.name }

// String returns the name. It contains no arguments, because they may be secret.
func (c Command) String() string { return c.name }

// Idempotent returns a copy of the command that may be sent again even if the server may already
// have executed it. Commands that only read do not need this.
func (c Command) Idempotent() Command {
	c.idempotent = true
	return c
}

// SlowFor returns a copy of the command for which the server may be silent for d longer than
// Options.StallTimeout before the connection is closed.
func (c Command) SlowFor(d time.Duration) Command {
	c.slowFor = max(d, 0)
	return c
}

// repeatable reports whether the command may be executed twice. An XREAD that waits for new entries
// may not, because a second attempt does not find the entries that were new in the first.
func (c *Command) repeatable() bool {
	return c.idempotent || c.info.flags&flagReadOnly != 0 && !c.waits
}
