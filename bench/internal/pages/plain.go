package pages

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"net"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Names of plain connections as the client in a [loadproc.Spec]: each caller has one, sends a GET,
// or an MGET of Array keys, and compares the reply; over Thrift, it calls the method of the
// resource. With a Batch, it sends as many requests in one write and then reads all replies.
const (
	PlainName  = "plain"
	ThriftName = "plain-thrift"
)

// plainTarget holds the encoded keys and values of the documents.
type plainTarget struct {
	// Immutable after openPlain.
	address string
	seed    uint64
	many    int      // keys of an MGET; 0 for one key
	command string   // of a request for one key, before the key
	head    []byte   // of a reply to MGET
	keys    [][]byte // bulk strings, or calls
	values  [][]byte // bulk strings, or answers
}

func openPlain(ctx context.Context, s loadproc.Spec) (load.Target, error) {
	t := &plainTarget{address: s.Address, seed: s.Seed, many: s.Array, command: "*2\r\n$3\r\nGET\r\n", head: fmt.Appendf(nil, "*%d\r\n", s.Array)}
	for n := range Count {
		t.keys, t.values = append(t.keys, bulk([]byte(Key(n)))), append(t.values, bulk(Document(n)))
	}
	return t, t.learn(ctx, s)
}

// learn requests every document once, one at a time, if the specification says so.
func (t *plainTarget) learn(ctx context.Context, s loadproc.Spec) error {
	if !s.Learn {
		return nil
	}
	c, err := t.dial(ctx, 0)
	if err != nil {
		return err
	}
	for n := range Count {
		c.begin()
		c.ask(n)
		c.flush()
		c.receive()
	}
	return errors.Join(c.broken, c.Close())
}

func bulk(text []byte) []byte { return fmt.Appendf(nil, "$%d\r\n%s\r\n", len(text), text) }

// NewCaller implements [load.Target].
func (t *plainTarget) NewCaller(ctx context.Context, i int) (load.Caller, error) {
	return t.dial(ctx, i)
}

func (t *plainTarget) dial(ctx context.Context, i int) (*plainCaller, error) {
	conn, err := new(net.Dialer).DialContext(ctx, "tcp", t.address)
	if err != nil {
		return nil, err
	}
	return &plainCaller{
		target: t, conn: conn, reader: bufio.NewReaderSize(conn, 64<<10), rng: rand.New(rand.NewPCG(t.seed, uint64(i))),
	}, nil
}

// A plainCaller is one connection.
type plainCaller struct {
	target *plainTarget
	conn   net.Conn

	// Owned by the goroutine that calls Do.
	reader  *bufio.Reader
	rng     *rand.Rand
	request []byte
	asked   []int // the keys of all requests in flight, in order
	next    int   // index in asked of the first key without a reply
	broken  error // the error after which the connection must not be used
}

// Do implements [load.Caller].
func (c *plainCaller) Do(context.Context) error {
	c.send(1)
	c.receive()
	return c.broken
}

// DoBatch implements [load.BatchCaller].
func (c *plainCaller) DoBatch(_ context.Context, outcomes []error) {
	c.send(len(outcomes))
	for i := range outcomes {
		c.receive()
		outcomes[i] = c.broken
	}
}

// send writes n requests for random documents together.
func (c *plainCaller) send(n int) {
	c.begin()
	for range n {
		if c.target.many == 0 {
			c.ask(c.rng.IntN(len(c.target.keys)))
			continue
		}
		c.request = fmt.Appendf(c.request, "*%d\r\n$4\r\nMGET\r\n", 1+c.target.many)
		for range c.target.many {
			c.add(c.rng.IntN(len(c.target.keys)))
		}
	}
	c.flush()
}

func (c *plainCaller) begin() { c.request, c.asked, c.next = c.request[:0], c.asked[:0], 0 }

// ask adds a request for one document.
func (c *plainCaller) ask(key int) {
	c.request = append(c.request, c.target.command...)
	c.add(key)
}

func (c *plainCaller) add(key int) {
	c.request, c.asked = append(c.request, c.target.keys[key]...), append(c.asked, key)
}

func (c *plainCaller) flush() {
	if _, err := c.conn.Write(c.request); err != nil && c.broken == nil {
		c.broken = err
	}
}

// receive reads and compares the reply to the oldest request in flight.
func (c *plainCaller) receive() {
	if c.broken != nil {
		return
	}
	if c.target.many > 0 {
		if c.broken = c.expect(c.target.head); c.broken != nil {
			return
		}
	}
	for range max(c.target.many, 1) {
		if c.broken = c.expect(c.target.values[c.asked[c.next]]); c.broken != nil {
			return
		}
		c.next++
	}
}

var errReply = errors.New("pages: a wrong reply")

// expect reads the expected continuation of the reply. The first line is compared before waiting
// for the rest, because an error reply is shorter.
func (c *plainCaller) expect(want []byte) error {
	line := want[:bytes.IndexByte(want, '\n')+1]
	for _, part := range [][]byte{line, want[len(line):]} {
		got, err := c.reader.Peek(min(len(part), len("-E\r\n")))
		if err == nil && bytes.HasPrefix(part, got) {
			got, err = c.reader.Peek(len(part))
		}
		switch {
		case err != nil:
			return err
		case !bytes.Equal(got, part):
			got, _ = c.reader.Peek(c.reader.Buffered()) // these bytes are buffered
			return fmt.Errorf("%w: %.60q, want %.60q", errReply, got, part)
		}
		if _, err := c.reader.Discard(len(part)); err != nil {
			return err
		}
	}
	return nil
}

// Close implements [load.Caller].
func (c *plainCaller) Close() error { return c.conn.Close() }
