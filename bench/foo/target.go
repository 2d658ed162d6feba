package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/examples/foo/ladder"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Names of the targets in a [loadproc.Spec].
const (
	overHTTP  = "foo"
	inProcess = "foo-handler"
)

// Names of the first member of an object.
const (
	asTagged = "srt_a" // as the service expects it: both strings are hashed
	asNamed  = "str_a" // as in the article's text; the service does not know it and hashes only the second string
)

// A work is the job of the callers of a load process, in addition to a [loadproc.Spec].
type work struct {
	First   string // name of the first member
	Version string // of the handler, or floorName; empty over HTTP
}

// targets is for [loadproc.Child].
func targets() loadproc.Targets {
	return loadproc.Targets{
		overHTTP: func(_ context.Context, s loadproc.Spec) (load.Target, error) {
			w, err := workOf(s)
			if err != nil {
				return nil, err
			}
			return newTarget(s.Address, exchanges(s.Seed, w.First)), nil
		},
		inProcess: func(_ context.Context, s loadproc.Spec) (load.Target, error) {
			w, err := workOf(s)
			if err != nil {
				return nil, err
			}
			return newHandlerTarget(w.Version, exchanges(s.Seed, w.First))
		},
	}
}

func workOf(s loadproc.Spec) (w work, err error) {
	if err = json.Unmarshal(s.Options, &w); err != nil {
		err = fmt.Errorf("options: %w", err)
	}
	return w, err
}

// An exchange is the body of a request and the body of its answer.
type exchange struct{ body, answer []byte }

// different is the number of different requests, which are used in turn, so that an answer to
// another request is detected.
const different = 8

func exchanges(seed uint64, first string) []exchange {
	all := make([]exchange, different)
	for i := range all {
		all[i].body, all[i].answer = ladder.Example(different*seed+uint64(i), ladder.ExampleItems, first)
	}
	return all
}

// A target is a service over HTTP/1.1.
type target struct {
	// Immutable after newTarget.
	address   string
	exchanges []exchange // with whole requests instead of bodies
}

func newTarget(address string, exchanges []exchange) *target {
	for i, e := range exchanges {
		exchanges[i].body = fmt.Appendf(nil, "GET /foo HTTP/1.1\r\nHost: %s\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n%s", address, len(e.body), e.body)
	}
	return &target{address, exchanges}
}

// NewCaller implements [load.Target].
func (t *target) NewCaller(ctx context.Context, i int) (load.Caller, error) {
	conn, err := (&net.Dialer{Timeout: 30 * time.Second, KeepAlive: -1}).DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	return &caller{target: t, conn: conn, reader: bufio.NewReaderSize(conn, 64<<10), next: i}, nil
}

// A caller is one connection and behaves like hey with keep-alive: it sends a GET with a body, and
// reads the complete answer.
type caller struct {
	target *target

	// Owned by the goroutine that calls Do; Close may use conn concurrently.
	conn   net.Conn
	reader *bufio.Reader
	next   int
	answer []byte
	dead   bool
}

var errDead = errors.New("foo: the connection has already failed")

// Do implements [load.Caller]. After an error the connection is not used again.
func (c *caller) Do(context.Context) error {
	if c.dead {
		return errDead
	}
	e := &c.target.exchanges[c.next%len(c.target.exchanges)]
	c.next++
	err := c.exchange(e)
	c.dead = err != nil
	return err
}

func (c *caller) exchange(e *exchange) error {
	if _, err := c.conn.Write(e.body); err != nil {
		return err
	}
	length, err := c.readHead()
	if err != nil {
		return err
	}
	c.answer = c.answer[:0]
	if length >= 0 {
		err = c.readPart(length)
	} else {
		err = c.readChunks()
	}
	if err != nil {
		return err
	}
	if !bytes.Equal(c.answer, e.answer) {
		return fmt.Errorf("foo: the answer is %.80q, want %.80q", c.answer, e.answer)
	}
	if n := c.reader.Buffered(); n > 0 {
		return fmt.Errorf("foo: %d unexpected bytes", n)
	}
	return nil
}

// maxAnswer is far above the length of an answer.
const maxAnswer = 1 << 20

// chunked stands for the length of a chunked body.
const chunked = -1

// readHead reads the status and the header, and returns the length of the body.
func (c *caller) readHead() (length int, err error) {
	line, err := c.reader.ReadSlice('\n')
	if err != nil {
		return 0, err
	}
	if !bytes.HasPrefix(line, []byte("HTTP/1.1 200 ")) {
		return 0, fmt.Errorf("foo: status line %.80q, want 200", line)
	}
	const none = -2
	length = none
	for {
		if line, err = c.reader.ReadSlice('\n'); err != nil {
			return 0, err
		}
		if line = bytes.TrimRight(line, "\r\n"); len(line) == 0 {
			break
		}
		name, value, _ := bytes.Cut(line, []byte(":"))
		value = bytes.TrimSpace(value)
		switch {
		case bytes.EqualFold(name, []byte("Content-Length")):
			length, err = strconv.Atoi(string(value))
			if err != nil || length < 0 || length > maxAnswer {
				return 0, fmt.Errorf("foo: Content-Length %.40q", value)
			}
		case bytes.EqualFold(name, []byte("Transfer-Encoding")):
			if string(value) != "chunked" {
				return 0, fmt.Errorf("foo: Transfer-Encoding %.40q", value)
			}
			length = chunked
		}
	}
	if length == none {
		return 0, errors.New("foo: the answer has no length")
	}
	return length, nil
}

// readPart appends n bytes to the answer.
func (c *caller) readPart(n int) error {
	have := len(c.answer)
	if have+n > maxAnswer {
		return fmt.Errorf("foo: an answer of more than %d bytes", maxAnswer)
	}
	if cap(c.answer) < have+n {
		c.answer = append(make([]byte, 0, have+n), c.answer...)
	}
	c.answer = c.answer[:have+n]
	_, err := io.ReadFull(c.reader, c.answer[have:])
	return err
}

// readChunks appends a chunked body (RFC 9112, section 7.1) without extensions and trailers.
func (c *caller) readChunks() error {
	for {
		line, err := c.reader.ReadSlice('\n')
		if err != nil {
			return err
		}
		n, err := strconv.ParseUint(string(bytes.TrimRight(line, "\r\n")), 16, 31)
		if err != nil {
			return fmt.Errorf("foo: size of a chunk %.40q", line)
		}
		if err := c.readPart(int(n)); err != nil {
			return err
		}
		if line, err = c.reader.ReadSlice('\n'); err != nil {
			return err
		}
		if string(line) != "\r\n" {
			return fmt.Errorf("foo: a chunk ends with %.40q", line)
		}
		if n == 0 {
			return nil
		}
	}
}

// Close implements [load.Caller].
func (c *caller) Close() error { return c.conn.Close() }
