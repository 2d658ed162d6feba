package httpload

import (
	"context"
	"errors"
	"io"
	"slices"
	"sync"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A Target repeatedly sends one request, several requests by weight, or those of a file. It is
// created by [New].
type Target struct {
	// Immutable after New.
	name        string
	endpoint    Endpoint
	requests    []request
	fresh       bool // whether each request has a new connection
	timeout     time.Duration
	connections int
	streams     int     // callers that share a connection
	links       []*link // connections of HTTP/2; empty for HTTP/1.1
	opening     *Opening
	firstByte   []*load.Buckets // the callers are distributed among them

	// Set if there are several requests, or placeholders for keys.
	chooses  bool
	weights  mix.Weights
	keys     clientload.Keys
	recorder *mix.Recorder // nil if there is only one request

	sequel *sequel      // nil unless requests of a file are sent
	turn   atomic.Int64 // the index of the next request of the file

	mu      sync.Mutex
	callers []*caller // guarded by mu
	before  *Tally    // guarded by mu: at the start of the window
	after   Tally     // guarded by mu: at the last reading
}

// Name returns the method and the URL, without the parts that may be secret: user, password and
// query.
func (t *Target) Name() string { return t.name }

// Address returns the network and the address of connections, as package net uses them.
func (t *Target) Address() (network, address string) { return t.endpoint.Network, t.endpoint.Address }

// NewCaller opens a connection, unless each request has a new one or callers share connections.
func (t *Target) NewCaller(ctx context.Context, i int) (load.Caller, error) {
	c := &caller{target: t, request: &t.requests[0], message: t.requests[0].bytes, record: t.recorder.New()}
	c.firstByte = t.firstByte[i%len(t.firstByte)]
	if t.chooses {
		c.chooser = t.keys.Chooser(i, t.connections*t.streams)
	}
	c.conn.Endpoint, c.conn.Index, c.conn.Timed = &t.endpoint, i, true
	t.mu.Lock()
	t.callers = append(t.callers, c)
	t.mu.Unlock()
	if len(t.links) > 0 {
		c.link, c.parser = t.links[i%len(t.links)], newParser(t.links[0].scheme)
		if _, err := c.link.ready(ctx); err != nil {
			return nil, err
		}
		return c, nil
	}
	if t.fresh {
		return c, nil
	}
	if err := c.ready(ctx); err != nil {
		_ = c.Close()
		return nil, err
	}
	return c, nil
}

// A caller is one connection, which is reopened after it has ended.
type caller struct {
	target    *Target
	firstByte *load.Buckets
	conn      Conn
	link      *link // used instead of conn; nil for HTTP/1.1

	// Owned by the goroutine that calls Do.
	chooser *clientload.Chooser // nil if there is only one request without placeholders
	record  *mix.Record         // nil if there is only one request
	request *request            // to be sent
	message []byte              // the same with a key or a target
	logged  int                 // another status that counts as right; 0 if there is none
	memory  []byte              // the buffer for messages
	key     []byte
	parser  *parser // for HTTP/2
	open    bool
	served  bool      // a response has arrived over this connection
	sent    time.Time // when sending the last request began
	armed   time.Time // the deadline of the connection is late enough until this time
	counts  counts
	status  int   // of the response to the last request; 0 if it got none
	length  int64 // of its body
}

// LastResponse returns the status and the length of the body of the response to the last
// request, or 0 if it got none.
func (c *caller) LastResponse() (status int, length int64) { return c.status, c.length }

// Close implements [load.Caller].
func (c *caller) Close() error {
	if c.link != nil {
		return c.link.close()
	}
	return c.conn.Close()
}

// Do sends a request and reads the response. After an error the next call
// opens a new connection.
func (c *caller) Do(ctx context.Context) error {
	if c.target.sequel != nil {
		c.follow()
	}
	if c.chooser == nil {
		return c.send(ctx)
	}
	n := c.next()
	began := c.record.Begin()
	err := c.send(ctx)
	c.record.End(ctx, n, began, err)
	return err
}

// next chooses the next request and returns its number.
func (c *caller) next() int {
	t := c.target
	n := t.weights.Choose(c.chooser)
	c.request = &t.requests[n]
	c.message = c.request.bytes
	if places := c.request.template; places != nil {
		c.key = t.keys.AppendName(c.key[:0], c.chooser.Key())
		c.memory = places.append(c.memory[:0], c.key)
		c.message = c.memory
	}
	return n
}

func (c *caller) send(ctx context.Context) error {
	c.status, c.length = 0, 0
	if c.link != nil {
		return c.stream(ctx)
	}
	if err := c.ready(ctx); err != nil {
		return err
	}
	r, err := c.exchange()
	if err != nil && c.stale(err) {
		// The server has closed an idle connection. Other clients retry in this case, too.
		if err = c.ready(ctx); err == nil {
			r, err = c.exchange()
		}
	}
	if err != nil {
		c.hangUp()
		return err
	}
	c.firstByte.Record(c.conn.FirstByte().Sub(c.sent))
	c.counts.add(&r)
	c.status, c.length, c.served = r.Status, r.Length, true
	surplus := c.conn.Surplus()
	if r.Close || c.target.fresh || surplus > 0 {
		c.hangUp()
	}
	if surplus > 0 { // it is unknown which of the responses answers the request
		c.counts.duplicates++
		return duplicateAnswer(surplus)
	}
	if !c.request.right.has(r.Status) && r.Status != c.logged {
		return StatusError(r.Status)
	}
	return nil
}

// ready opens a connection if there is none.
func (c *caller) ready(ctx context.Context) error {
	if c.open {
		return nil
	}
	if err := c.conn.Open(ctx); err != nil {
		return load.WithKind("connect: "+load.ErrorKind(err), err)
	}
	c.open, c.served, c.armed = true, false, time.Time{}
	c.counts.opened++
	return nil
}

func (c *caller) hangUp() {
	c.conn.Hangup()
	c.open = false
}

// exchange sends the request and reads the response.
func (c *caller) exchange() (Response, error) {
	c.sent = time.Now()
	if err := c.arm(c.sent); err != nil {
		return Response{}, err
	}
	if err := c.conn.Send(c.message); err != nil {
		return Response{}, err
	}
	return c.conn.Read(c.request.bodyless)
}

// arm bounds the time of a request. Setting a deadline takes a good part of a microsecond, so the
// deadline is set an eighth of the timeout later than necessary, and is kept for all requests that
// begin within that time.
func (c *caller) arm(now time.Time) error {
	timeout := c.target.timeout
	if timeout == 0 || now.Before(c.armed) {
		return nil
	}
	slack := timeout / 8
	c.armed = now.Add(slack)
	return c.conn.Net().SetDeadline(now.Add(timeout + slack))
}

// goneErrors are the errors of a connection that the server has closed. Over TLS without a close
// notification it is ErrUnexpectedEOF.
var goneErrors = []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}

// stale reports whether the server has closed the connection without a byte of a response, and the
// request may be sent again. If so, it closes the connection.
func (c *caller) stale(err error) bool {
	gone := slices.ContainsFunc(goneErrors, func(e error) bool { return errors.Is(err, e) })
	if !gone || !c.served || !c.request.repeatable || c.conn.Began() {
		return false
	}
	c.hangUp()
	return true
}
