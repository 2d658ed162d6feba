package cluster

import (
	"errors"
	"strconv"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// A Command queries a node about the cluster.
type Command uint8

// The commands.
const (
	Shards Command = iota
	Nodes
	SlotRanges
	Info
)

// Args returns the words of the command.
func (c Command) Args() [2]string {
	return [...][2]string{{"CLUSTER", "SHARDS"}, {"CLUSTER", "NODES"}, {"CLUSTER", "SLOTS"}, {"CLUSTER", "INFO"}}[c]
}

// String returns the command as a user would write it.
func (c Command) String() string {
	args := c.Args()
	return args[0] + " " + args[1]
}

// A reader reads the values of one reply and keeps its position for errors. It checks every length
// before it allocates memory for it.
type reader struct {
	d       resp.Decoder
	command Command
	outer   place // such as shard 3
	inner   place // such as node 1
}

type place struct {
	what string // if empty, none
	n    int
}

func newReader(command Command, frame []byte) (*reader, error) {
	r := &reader{command: command}
	if len(frame) > maxReply {
		return nil, r.wrong(strconv.Itoa(len(frame))+" bytes", "at most "+strconv.Itoa(maxReply))
	}
	r.d = resp.NewDecoder(frame)
	return r, nil
}

func (p place) String() string { return p.what + " " + strconv.Itoa(p.n) }

func (r *reader) in(what string, n int) { r.outer, r.inner = place{what, n}, place{} }

func (r *reader) within(what string, n int) { r.inner = place{what, n} }

func (r *reader) wrong(wrong, expected string) error {
	e := &ReplyError{Command: r.command.String(), Wrong: wrong, Expected: expected}
	if r.outer.what != "" {
		e.Where = r.outer.String()
	}
	if r.inner.what != "" {
		e.Where += ", " + r.inner.String()
	}
	return e
}

// unexpected returns the error for a value that the reply should not contain there.
func (r *reader) unexpected(t resp.Token, expected string) error {
	switch {
	case t.Null:
		return r.wrong("null", expected)
	case t.Kind == resp.Array || t.Kind == resp.Map:
		return r.wrong(t.Kind.String()+" of "+strconv.Itoa(t.Len), expected)
	case t.Bytes != nil:
		return r.wrong(t.Kind.String()+" "+quoted(t.Bytes), expected)
	}
	return r.wrong(t.Kind.String(), expected)
}

func (r *reader) next() (resp.Token, error) {
	t, err := r.d.Next()
	if err != nil {
		var wrong *resp.ProtocolError
		if errors.As(err, &wrong) {
			return t, r.wrong(wrong.Wrong+" at byte "+strconv.Itoa(wrong.Offset), wrong.Expected)
		}
		return t, r.wrong("the end of the reply", "a value")
	}
	return t, nil
}

// first reads the first value of a reply. An error of the server is a [*RefusedError].
func (r *reader) first() (resp.Token, error) {
	t, err := r.next()
	if err == nil && (t.Kind == resp.SimpleError || t.Kind == resp.BulkError) {
		return t, &RefusedError{Command: r.command.String(), Text: string(t.Bytes[:min(len(t.Bytes), 1024)])}
	}
	return t, err
}

// list reads the start of an array of least to most elements.
func (r *reader) list(least, most int, expected string) (int, error) {
	t, err := r.next()
	if err != nil {
		return 0, err
	}
	return r.listOf(t, least, most, expected)
}

func (r *reader) listOf(t resp.Token, least, most int, expected string) (int, error) {
	switch {
	case t.Kind != resp.Array || t.Null:
		return 0, r.unexpected(t, expected)
	case t.Len < least || t.Len > most:
		return 0, r.unexpected(t, expected+" of "+strconv.Itoa(least)+" to "+strconv.Itoa(most))
	}
	return t.Len, nil
}

// fields reads the start of a map, which is an array of names and values in RESP2, and calls field
// with each name. Field reads the value.
func (r *reader) fields(expected string, field func(name []byte) error) error {
	t, err := r.next()
	if err != nil {
		return err
	}
	if t.Kind != resp.Map && t.Kind != resp.Array || t.Null || t.Len < 0 || t.Len%2 != 0 || t.Len > 2*maxFields {
		return r.unexpected(t, expected+" of at most "+strconv.Itoa(maxFields)+" fields")
	}
	for range t.Len / 2 {
		name, _, err := r.text(maxName, "the name of a field")
		if err != nil {
			return err
		}
		if err := field(name); err != nil {
			return err
		}
	}
	return nil
}

// text reads a string of at most most bytes, which aliases the reply, or null.
func (r *reader) text(most int, expected string) (text []byte, null bool, err error) {
	t, err := r.next()
	if err != nil {
		return nil, false, err
	}
	switch {
	case t.Null:
		return nil, true, nil
	case t.Kind != resp.BulkString && t.Kind != resp.SimpleString && t.Kind != resp.VerbatimString:
		return nil, false, r.unexpected(t, expected)
	case len(t.Bytes) > most:
		return nil, false, r.wrong("a string of "+strconv.Itoa(len(t.Bytes))+" bytes", expected+" of at most "+strconv.Itoa(most))
	}
	return t.Bytes, false, nil
}

// endpoint reads a preferred endpoint. If it is unknown, it is null, or an empty array in the
// replies of some services.
func (r *reader) endpoint() (text []byte, unknown bool, err error) {
	ahead := r.d
	if t, err := ahead.Next(); err == nil && t.Kind == resp.Array && t.Len == 0 {
		r.d = ahead
		return nil, true, nil
	}
	return r.text(maxHost, "an endpoint")
}

// into reads a string into dst; null is read as an empty string.
func (r *reader) into(dst *string, most int, expected string) error {
	text, _, err := r.text(most, expected)
	*dst = string(text)
	return err
}

// integer reads an integer, or a string that is one.
func (r *reader) integer(least, most int64, expected string) (int64, error) {
	t, err := r.next()
	if err != nil {
		return 0, err
	}
	n := t.Int
	switch {
	case t.Kind == resp.Integer:
	case t.Kind == resp.BulkString && !t.Null:
		if n, err = resp.ParseInt(t.Bytes); err != nil {
			return 0, r.unexpected(t, expected)
		}
	default:
		return 0, r.unexpected(t, expected)
	}
	if n < least || n > most {
		return 0, r.wrong(strconv.FormatInt(n, 10), expected+" from "+strconv.FormatInt(least, 10)+" to "+strconv.FormatInt(most, 10))
	}
	return n, nil
}

func (r *reader) port() (int, error) {
	n, err := r.integer(0, 65535, "a port")
	return int(n), err
}

// skip skips a value.
func (r *reader) skip() error {
	if err := r.d.Skip(); err != nil {
		return r.wrong("a value that is cut off", "a whole value")
	}
	return nil
}

// body reads a reply that is a text.
func (r *reader) body() ([]byte, error) {
	t, err := r.first()
	if err != nil {
		return nil, err
	}
	if t.Null || t.Kind != resp.BulkString && t.Kind != resp.VerbatimString && t.Kind != resp.SimpleString {
		return nil, r.unexpected(t, "text")
	}
	return t.Bytes, nil
}
