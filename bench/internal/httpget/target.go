// Package httpget is the smallest HTTP/1.1 client that still checks what it
// gets: keep-alive GETs of documents by key over plain TCP, or over TLS and there over
// HTTP/2 too: see tls.go and http2.go. It exists because the client of net/http costs
// more than the servers under test.
//
// A request is the request line, Host, and the fields that the target names, usually
// none. An answer must be HTTP/1.1 200 with exactly one Content-Length, no
// Transfer-Encoding and the content coding expected; its body must begin with the key
// asked for. One answer in 64 is compared, by hash, with the one that the first pass
// over all keys has learned; one in a content coding always, because its key
// cannot be seen. Arrays of many documents are compared with what the documents
// of the first pass make: see batch.go.
package httpget

import (
	"bytes"
	"compress/gzip"
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"net"
	"strconv"
	"sync"
	"sync/atomic"
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

	// Fields are blocks of header lines, each line with its CR LF. Caller i
	// sends block i modulo their number with every request.
	Fields []string
	// Traced adds to each request a traceparent of its own (W3C Trace Context)
	// that is not sampled.
	Traced bool
	// Coding is the content coding that answers must have: "gzip", or "" for none.
	Coding string
	// Batch is how many keys one request asks for, as /depts?key=1&key=2. 0: one
	// document, by its path.
	Batch int
	// Series is how many requests one Do makes, one after the other. 0: one.
	Series int
	// Document says what the document of a key must be; the first pass compares.
	// Nil: nobody knows.
	Document func(key int64) []byte
	// CacheStatus is the whole field Cache-Status that every answer must have.
	// Empty: nobody looks.
	CacheStatus string
	// Strays counts the answers of the first pass whose Cache-Status is another.
	// Nil: such an answer is an error; later it always is.
	Strays *atomic.Int64
	// Learners is how many connections the first pass has; the keys are then asked
	// for in random order. 0: one connection, and the keys in their order.
	Learners int

	// Certificate is what the server must show, in PEM: callers speak TLS with it.
	// Empty: clear text.
	Certificate []byte
	// Resume makes every connection of a caller but its first resume the session of
	// the one before. Without it every handshake is a full one.
	Resume bool
	// HTTP2 makes callers speak HTTP/2, one request at a time. It needs a
	// Certificate, and has neither Fields, Traced, Coding, CacheStatus nor batches.
	HTTP2 bool
	// Fresh makes each Do open a connection and close it. The first pass keeps its
	// own.
	Fresh bool

	hashSeed  maphash.Seed
	learned   []uint64 // by key; nil: answers are not compared
	documents [][]byte // the same, decoded, for batches
	bytes     int64    // of all bodies together, as they were sent
}

// sampled says how many answers pass for one whose hash is compared. Hashing
// each would add half a microsecond to the client's cost of a request.
const sampled = 64

// judge decodes the first answer for a key and looks at all of it.
func (t *Target) judge(c *Caller, key int64, body []byte) ([]byte, error) {
	body, err := c.decode(body)
	if err != nil {
		return nil, fmt.Errorf("key %d: %w", key, err)
	}
	if t.Document != nil {
		if want := t.Document(key); !bytes.Equal(body, want) {
			return nil, fmt.Errorf("document %d is %.200q, want %.200q", key, body, want)
		}
	}
	if err := c.checkKey(key, body); err != nil {
		return nil, err
	}
	if t.Batch == 0 {
		return nil, nil
	}
	return bytes.Clone(body), nil
}

// MeanBytes returns the mean size of the bodies that Learn has seen.
func (t *Target) MeanBytes() float64 { return float64(t.bytes) / float64(t.Keys) }

// NewCaller opens a connection, unless every Do does.
func (t *Target) NewCaller(ctx context.Context, i int) (load.Caller, error) {
	c, err := t.newCaller(i)
	if err != nil || t.Fresh {
		return c, err
	}
	return c, c.connect(ctx)
}

// dial returns a caller with a connection.
func (t *Target) dial(ctx context.Context, i int) (*Caller, error) {
	c, err := t.newCaller(i)
	if err != nil {
		return nil, err
	}
	return c, c.connect(ctx)
}

func (t *Target) newCaller(i int) (*Caller, error) {
	c := &Caller{
		target:  t,
		index:   i,
		rng:     rand.New(rand.NewPCG(t.Seed, uint64(i))),
		request: make([]byte, 0, 128),
	}
	if len(t.Fields) > 0 {
		c.fields = t.Fields[i%len(t.Fields)]
	}
	if t.HTTP2 && (len(t.Certificate) == 0 || len(t.Fields) > 0 || t.Traced || t.Coding != "" || t.CacheStatus != "" || t.Batch > 0) {
		return nil, errors.New("httpget: HTTP/2 is for plain requests over TLS")
	}
	var err error
	if len(t.Certificate) > 0 {
		c.tls, err = t.tlsConfig()
	}
	return c, err
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
	if err := c.keep(conn); err != nil {
		return err
	}
	if c.tls != nil {
		if err := c.handshake(ctx); err != nil {
			return err
		}
	}
	c.have, c.used, c.http2 = 0, 0, nil
	if c.target.HTTP2 {
		c.http2, err = openHTTP2(c.conn)
	}
	return err
}

// keep makes conn the connection of the caller, or closes it if Close has been called.
func (c *Caller) keep(conn net.Conn) error {
	c.mu.Lock()
	defer c.mu.Unlock()
	if c.closed {
		_ = conn.Close()
		return net.ErrClosed
	}
	c.conn = conn
	return nil
}

// A Caller is one connection.
type Caller struct {
	target *Target
	index  int
	fields string      // sent with every request
	tls    *tls.Config // nil: clear text

	// Guarded by mu, because Close may be called during a Do. The goroutine that calls
	// Do alone sets conn, and reads it without mu.
	mu     sync.Mutex
	conn   net.Conn // nil: none was opened yet
	closed bool

	// Owned by the goroutine that calls Do.
	http2   *http2Conn // nil: HTTP/1.1
	shaken  bool       // a handshake is done, so the next can resume its session
	rng     *rand.Rand
	request []byte
	buf     [4096]byte // a whole answer usually
	large   []byte     // instead of buf once a body did not fit
	have    int        // bytes read
	used    int        // bytes of them that belong to the previous answer
	done    uint64
	broken  bool

	learning  bool    // the answer belongs to the first pass
	anyCoding bool    // the next answer may be in any content coding
	keys      []int64 // of the batch under way
	unzip     *gzip.Reader
	plain     bytes.Buffer // what was decoded last
}

// Do makes the requests of one series, for random keys, and checks the answers.
// After an error the next call begins with a new connection.
func (c *Caller) Do(ctx context.Context) error {
	if c.target.Fresh {
		return c.doFresh(ctx)
	}
	if err := c.repair(ctx); err != nil {
		return err
	}
	return c.series()
}

// doFresh is Do over a connection of its own. It ends with the notice of TLS and without
// a reset, as clients end connections.
func (c *Caller) doFresh(ctx context.Context) error {
	err := c.connect(ctx)
	if err == nil {
		err = c.series()
	}
	if c.conn != nil {
		_ = c.conn.Close()
	}
	return err
}

// series makes the requests of one series over the connection there is.
func (c *Caller) series() error {
	for range max(c.target.Series, 1) {
		ask := c.askOne
		if c.target.Batch > 0 {
			ask = c.askBatch
		}
		if err := ask(); err != nil {
			c.broken = true
			return err
		}
	}
	return nil
}

// repair opens a new connection after an error.
func (c *Caller) repair(ctx context.Context) error {
	if !c.broken {
		return nil
	}
	_ = c.conn.Close()
	if err := c.connect(ctx); err != nil {
		return err
	}
	c.broken = false
	return nil
}

// askOne asks for one document.
func (c *Caller) askOne() error {
	t := c.target
	key := 1 + c.rng.Int64N(t.Keys)
	body, err := c.get(key)
	if err != nil {
		return err
	}
	return c.checkOne(key, body)
}

// Close ends the connection with a reset, so that a run over 16,384 connections
// leaves no ports in TIME_WAIT for the next one.
func (c *Caller) Close() error {
	c.mu.Lock()
	defer c.mu.Unlock()
	c.closed = true
	conn := c.conn
	if conn == nil {
		return nil
	}
	if secure, ok := conn.(*tls.Conn); ok {
		conn = secure.NetConn()
	}
	if tcp, ok := conn.(*net.TCPConn); ok {
		_ = tcp.SetLinger(0)
	}
	return conn.Close()
}

// get asks for one document. The body is as it was sent, and valid until the next
// exchange.
func (c *Caller) get(key int64) ([]byte, error) {
	c.request = append(c.request[:0], "GET "...)
	c.request = append(c.request, c.target.Path...)
	c.request = strconv.AppendInt(c.request, key, 10)
	body, err := c.exchange()
	if err != nil {
		return nil, fmt.Errorf("httpget: key %d: %w", key, err)
	}
	return body, nil
}

// exchange completes the request, which has its method and target, sends it and
// reads the answer.
func (c *Caller) exchange() ([]byte, error) {
	if c.http2 != nil {
		return c.http2.get(c.request[len("GET "):])
	}
	c.finishRequest()
	if _, err := c.conn.Write(c.request); err != nil {
		return nil, err
	}
	if err := c.dropAnswer(); err != nil {
		return nil, err
	}
	return c.readAnswer()
}

// finishRequest appends what follows the target of the request.
func (c *Caller) finishRequest() {
	c.request = append(c.request, " HTTP/1.1\r\nHost: "+Host+"\r\n"...)
	c.request = append(c.request, c.fields...)
	if c.target.Traced {
		c.request = append(c.request, "traceparent: 00-"...)
		c.request = appendHex(c.request, c.rng.Uint64())
		c.request = appendHex(c.request, c.rng.Uint64())
		c.request = append(c.request, '-')
		c.request = appendHex(c.request, c.rng.Uint64()|1) // all zeros would be no id
		c.request = append(c.request, "-00\r\n"...)
	}
	c.request = append(c.request, crlf...)
}

// appendHex appends 16 hexadecimal digits.
func appendHex(dst []byte, n uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[n>>shift&15])
	}
	return dst
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

// readAnswer reads the answer that begins behind the previous one.
func (c *Caller) readAnswer() ([]byte, error) {
	h, err := c.readHead()
	if err != nil {
		return nil, err
	}
	if string(h.coding) != c.target.Coding && !c.anyCoding {
		return nil, fmt.Errorf("content coding %.40q, want %q", h.coding, c.target.Coding)
	}
	if want := c.target.CacheStatus; want != "" && string(h.status) != want {
		if c.target.Strays == nil || !c.learning {
			return nil, fmt.Errorf("Cache-Status %.80q, want %q", h.status, want)
		}
		c.target.Strays.Add(1)
	}
	size := h.size + h.length
	if c.used+size > len(c.memory()) {
		c.makeRoom(size)
	}
	start, end := c.used, c.used+size
	for c.have < end {
		n, err := c.conn.Read(c.memory()[c.have:])
		c.have += n
		if c.have < end && err != nil {
			return nil, fmt.Errorf("%d of %d bytes of the body: %w", c.have-start-h.size, h.length, err)
		}
	}
	c.used = end
	return c.memory()[start+h.size : end], nil
}

// readHead reads until the head is there; some of it may have come with the
// answer before.
func (c *Caller) readHead() (h head, err error) {
	if c.have > c.used {
		if h, err = c.parse(nil); err != nil || h.size > 0 {
			return h, err
		}
	}
	for {
		if c.have == len(c.memory()) {
			if c.used == 0 {
				return h, fmt.Errorf("a head of more than %d bytes", c.have)
			}
			c.makeRoom(0)
		}
		n, err := c.conn.Read(c.memory()[c.have:])
		c.have += n
		if h, err = c.parse(err); err != nil || h.size > 0 {
			return h, err
		}
	}
}

// makeRoom moves the answer under way to the front, of memory that has room for
// size bytes and one more, so that what nobody asked for shows.
func (c *Caller) makeRoom(size int) {
	rest := c.memory()[c.used:c.have]
	if size >= len(c.memory()) {
		c.large = make([]byte, size+1)
	}
	c.have, c.used = copy(c.memory(), rest), 0
}

// parse tries to read the head from what has arrived; its size is 0 if more must
// come. readErr is what the last read said.
func (c *Caller) parse(readErr error) (head, error) {
	h, err := parseHead(c.memory()[c.used:c.have])
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
