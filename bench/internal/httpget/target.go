// Package httpget sends GET requests for documents by key and checks the answers. It uses
// keep-alive connections of package httpload, in clear text or over TLS, where it also supports
// HTTP/2: see tls.go and http2.go.
//
// A request consists of the request line, Host, and the fields of the target, usually none. An
// answer must be HTTP/1.1 200 with exactly one Content-Length, no Transfer-Encoding and the
// expected content coding; its body must begin with the requested key. One answer in 64 is
// compared, by hash, with the one recorded in the first pass over all keys. Compressed answers are
// always compared, because their key is not visible. Arrays of many documents are compared with
// those composed of the documents of the first pass: see batch.go.
package httpget

import (
	"bytes"
	"compress/gzip"
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"strconv"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/internal/bench/httpload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A Target is a server of documents. Create it with a composite literal. If answers are to be
// compared, call Learn before using it as a load.Target.
type Target struct {
	// Immutable after Learn.
	Address string
	Path    string // of a document, without its key: "/depts/"
	Member  string // that the body begins with, up to the key: `{"deptno":`
	Keys    int64  // keys are 1 to Keys, chosen uniformly
	Seed    uint64
	// Sources spreads the connections over that many loopback addresses, from
	// 127.0.0.2 up, because one address has only some 28,000 ports. If zero, no source address is chosen.
	Sources int

	// Fields are blocks of header lines, each line with its CR LF. Caller i
	// sends block i modulo their number with every request.
	Fields []string
	// Traced adds to each request its own traceparent (W3C Trace Context) that is
	// not sampled.
	Traced bool
	// Coding is the content coding that answers must have: "gzip", or "" for none.
	Coding string
	// Batch is the number of keys per request, as in /depts?key=1&key=2. If zero, a
	// request is for one document, by its path.
	Batch int
	// Series is how many requests one Do makes, one after another. If zero, it is one.
	Series int
	// Document returns the expected document for a key, with which the first pass compares answers.
	// If nil, documents are not known.
	Document func(key int64) []byte
	// CacheStatus is the complete field Cache-Status that every answer must have. If empty, it is
	// not checked.
	CacheStatus string
	// Strays counts the answers of the first pass with a different Cache-Status. If nil, such an
	// answer is an error; after the first pass it always is.
	Strays *atomic.Int64
	// Learners is how many connections the first pass has; the keys are then
	// requested in random order. If zero, there is one connection, and keys are
	// requested in order.
	Learners int

	// Certificate is the certificate that the server must present, in PEM: callers
	// use TLS. If empty, they use clear text.
	Certificate []byte
	// Resume makes every connection of a caller except its first resume the session of the previous
	// one. Without it, every handshake is a full handshake.
	Resume bool
	// HTTP2 makes callers speak HTTP/2, one request at a time. It needs a Certificate, and cannot
	// be combined with Fields, Traced, Coding, CacheStatus or batches.
	HTTP2 bool
	// Fresh makes each Do open a connection and close it. The first pass keeps its
	// own.
	Fresh bool

	hashSeed  maphash.Seed
	learned   []uint64 // by key; nil if answers are not compared
	documents [][]byte // the same, decoded, for batches
	bytes     int64    // of all bodies together, as they were sent
}

// sampled is the number of answers per one whose hash is compared. Hashing each would add half a
// microsecond to the client's cost of a request.
const sampled = 64

// judge decodes the first answer for a key and checks all of it.
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
		rng:     rand.New(rand.NewPCG(t.Seed, uint64(i))),
		request: make([]byte, 0, 128),
	}
	if len(t.Fields) > 0 {
		c.fields = t.Fields[i%len(t.Fields)]
	}
	if t.HTTP2 && (len(t.Certificate) == 0 || len(t.Fields) > 0 || t.Traced || t.Coding != "" || t.CacheStatus != "" || t.Batch > 0) {
		return nil, errors.New("httpget: HTTP/2 is for plain requests over TLS")
	}
	endpoint := &httpload.Endpoint{Address: t.Address, Sources: t.Sources}
	if len(t.Certificate) > 0 {
		var err error
		if endpoint.TLS, err = t.tlsConfig(); err != nil {
			return nil, err
		}
		endpoint.Secured = t.secured
	}
	c.conn.Endpoint, c.conn.Index, c.conn.Keep, c.conn.OnHead = endpoint, i, true, c.checkHead
	return c, nil
}

func (c *Caller) connect(ctx context.Context) error {
	if err := c.conn.Open(ctx); err != nil {
		return err
	}
	c.http2 = nil
	if !c.target.HTTP2 {
		return nil
	}
	var err error
	c.http2, err = openHTTP2(c.conn.Net())
	return err
}

// A Caller is one connection.
type Caller struct {
	target *Target
	fields string // sent with every request
	conn   httpload.Conn

	// Owned by the goroutine that calls Do.
	http2   *http2Conn // nil for HTTP/1.1
	rng     *rand.Rand
	request []byte
	done    uint64
	broken  bool

	learning  bool    // whether the answer belongs to the first pass
	anyCoding bool    // the next answer may be in any content coding
	keys      []int64 // of the current batch
	unzip     *gzip.Reader
	plain     bytes.Buffer // the last decoded body
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

// doFresh is like Do, over a new connection. It closes the connection with a TLS close
// notification and without a reset, as clients do.
func (c *Caller) doFresh(ctx context.Context) error {
	err := c.connect(ctx)
	if err == nil {
		err = c.series()
	}
	c.conn.Hangup()
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
	c.conn.Hangup()
	if err := c.connect(ctx); err != nil {
		return err
	}
	c.broken = false
	return nil
}

// askOne requests one document.
func (c *Caller) askOne() error {
	t := c.target
	key := 1 + c.rng.Int64N(t.Keys)
	body, err := c.get(key)
	if err != nil {
		return err
	}
	return c.checkOne(key, body)
}

// Close closes the connection, even during a Do.
func (c *Caller) Close() error { return c.conn.Close() }

// get requests one document. The body is not decoded, and is valid until the next exchange.
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
	if err := c.conn.Idle(); err != nil {
		return nil, err
	}
	if err := c.conn.Send(c.request); err != nil {
		return nil, err
	}
	return c.readAnswer()
}

// readAnswer reads the answer that follows the previous one.
func (c *Caller) readAnswer() ([]byte, error) {
	r, err := c.conn.Read(false)
	return r.Body, err
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
		c.request = appendHex(c.request, c.rng.Uint64()|1) // an ID must not be all zeros
		c.request = append(c.request, "-00\r\n"...)
	}
	c.request = append(c.request, "\r\n"...)
}

// appendHex appends 16 hexadecimal digits.
func appendHex(dst []byte, n uint64) []byte {
	for shift := 60; shift >= 0; shift -= 4 {
		dst = append(dst, "0123456789abcdef"[n>>shift&15])
	}
	return dst
}

var errWrongKey = errors.New("httpget: the body is not that of the requested key")

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
