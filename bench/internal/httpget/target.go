// Package httpget is the smallest HTTP/1.1 client that still checks what it
// gets: keep-alive GETs of documents by key over plain TCP. It exists because the
// client of net/http costs more than the servers under test.
//
// A request is the request line and Host, nothing else. An answer must be
// HTTP/1.1 200 with exactly one Content-Length and no Transfer-Encoding; its body
// must begin with the key asked for. One answer in 64 is compared, by hash, with
// the one that the first pass over all keys has learned.
package httpget

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A Target is a server of documents. Create it by literal, then call Learn
// before it serves as a load.Target if answers are to be compared.
type Target struct {
	// Immutable after Learn.
	Address string
	Path    string // of a document, without its key: "/depts/"
	Member  string // that the body begins with, up to the key: `{"deptno":`
	Keys    int64  // keys are 1 to Keys, chosen uniformly
	Seed    uint64
	// Sources spreads the connections over that many loopback addresses, from
	// 127.0.0.2 up, because one address has only some 28,000 ports. 0: none is
	// chosen.
	Sources int

	hashSeed maphash.Seed
	learned  []uint64 // by key; nil: answers are not compared
	bytes    int64    // of all bodies together
}

// sampled says how many answers pass for one whose hash is compared. Hashing
// each would add half a microsecond to the client's cost of a request.
const sampled = 64

// Learn asks for every key once, one after the other, and remembers the answers.
func (t *Target) Learn(ctx context.Context) error {
	t.hashSeed = maphash.MakeSeed()
	learned := make([]uint64, t.Keys+1)
	c, err := t.dial(ctx, 0)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	t.bytes = 0
	for key := int64(1); key <= t.Keys; key++ {
		body, err := c.get(key)
		if err != nil {
			return fmt.Errorf("httpget: first pass: %w", err)
		}
		learned[key] = maphash.Bytes(t.hashSeed, body)
		t.bytes += int64(len(body))
	}
	t.learned = learned
	return nil
}

// MeanBytes returns the mean size of the bodies that Learn has seen.
func (t *Target) MeanBytes() float64 { return float64(t.bytes) / float64(t.Keys) }

// NewCaller opens a connection.
func (t *Target) NewCaller(ctx context.Context, i int) (load.Caller, error) { return t.dial(ctx, i) }

func (t *Target) dial(ctx context.Context, i int) (*Caller, error) {
	c := &Caller{
		target:  t,
		index:   i,
		rng:     rand.New(rand.NewPCG(t.Seed, uint64(i))),
		request: make([]byte, 0, 128),
	}
	return c, c.connect(ctx)
}

func (c *Caller) connect(ctx context.Context) error {
	dialer := net.Dialer{Timeout: 30 * time.Second, KeepAlive: -1}
	if c.target.Sources > 0 {
		dialer.LocalAddr = &net.TCPAddr{IP: net.IPv4(127, 0, 0, byte(2+c.index%c.target.Sources))}
		dialer.Control = bindWithoutPort
	}
	conn, err := dialer.DialContext(ctx, "tcp", c.target.Address)
	if err != nil {
		return err
	}
	c.conn, c.have, c.used = conn, 0, 0
	return nil
}

// A Caller is one connection.
type Caller struct {
	target *Target
	index  int

	// Owned by the goroutine that calls Do; Close may read conn beside it.
	conn    net.Conn
	rng     *rand.Rand
	request []byte
	buf     [4096]byte // a whole answer usually
	large   []byte     // instead of buf once a body did not fit
	have    int        // bytes read
	used    int        // bytes of them that belong to the previous answer
	done    uint64
	broken  bool
}

// Do asks for a random key and checks the answer. After an error the next call
// begins with a new connection.
func (c *Caller) Do(ctx context.Context) error {
	if c.broken {
		_ = c.conn.Close()
		if err := c.connect(ctx); err != nil {
			return err
		}
		c.broken = false
	}
	key := 1 + c.rng.Int64N(c.target.Keys)
	body, err := c.get(key)
	if err != nil {
		c.broken = true
		return err
	}
	c.done++
	if c.target.learned != nil && c.done%sampled == 0 && maphash.Bytes(c.target.hashSeed, body) != c.target.learned[key] {
		return fmt.Errorf("httpget: the body of key %d is not the one of the first pass", key)
	}
	return nil
}

// Close ends the connection with a reset, so that a run over 16,384 connections
// leaves no ports in TIME_WAIT for the next one.
func (c *Caller) Close() error {
	if tcp, ok := c.conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return c.conn.Close()
}

// get performs one exchange. The body is valid until the next one.
func (c *Caller) get(key int64) ([]byte, error) {
	c.request = append(c.request[:0], "GET "...)
	c.request = append(c.request, c.target.Path...)
	c.request = strconv.AppendInt(c.request, key, 10)
	c.request = append(c.request, " HTTP/1.1\r\nHost: bench\r\n\r\n"...)
	if _, err := c.conn.Write(c.request); err != nil {
		return nil, err
	}
	if err := c.dropAnswer(); err != nil {
		return nil, err
	}
	body, err := c.readAnswer()
	if err != nil {
		return nil, fmt.Errorf("httpget: key %d: %w", key, err)
	}
	return body, c.checkKey(key, body)
}

// dropAnswer forgets the previous answer. Nothing may have followed it.
func (c *Caller) dropAnswer() error {
	if c.have != c.used {
		return fmt.Errorf("httpget: %d bytes that nobody asked for", c.have-c.used)
	}
	c.have, c.used = 0, 0
	return nil
}

func (c *Caller) memory() []byte {
	if c.large != nil {
		return c.large
	}
	return c.buf[:]
}

func (c *Caller) readAnswer() ([]byte, error) {
	var h head
	for {
		mem := c.memory()
		if c.have == len(mem) {
			return nil, fmt.Errorf("a head of more than %d bytes", len(mem))
		}
		n, err := c.conn.Read(mem[c.have:])
		c.have += n
		if h, err = c.parse(err); err != nil {
			return nil, err
		}
		if h.size > 0 {
			break
		}
	}
	end := h.size + h.length
	if end > len(c.memory()) {
		grown := make([]byte, end+1)
		copy(grown, c.memory()[:c.have])
		c.large = grown
	}
	for c.have < end {
		n, err := c.conn.Read(c.memory()[c.have:])
		c.have += n
		if c.have < end && err != nil {
			return nil, fmt.Errorf("%d of %d bytes of the body: %w", c.have-h.size, h.length, err)
		}
	}
	c.used = end
	return c.memory()[h.size:end], nil
}

// parse tries to read the head from what has arrived; its size is 0 if more must
// come. readErr is what the last read said.
func (c *Caller) parse(readErr error) (head, error) {
	h, err := parseHead(c.memory()[:c.have])
	if err == nil && h.size == 0 && readErr != nil {
		err = readErr
	}
	return h, err
}

var errWrongKey = errors.New("httpget: the body is not that of the key asked for")

// checkKey compares the first member of the body with the key.
func (c *Caller) checkKey(key int64, body []byte) error {
	prefix := c.target.Member
	if len(body) <= len(prefix) || string(body[:len(prefix)]) != prefix {
		return fmt.Errorf("%w: key %d, body %.40q", errWrongKey, key, body)
	}
	got, i := int64(0), len(prefix)
	for ; i < len(body) && body[i] >= '0' && body[i] <= '9'; i++ {
		got = got*10 + int64(body[i]-'0')
	}
	if got != key || i == len(prefix) {
		return fmt.Errorf("%w: key %d, body %.40q", errWrongKey, key, body)
	}
	return nil
}
