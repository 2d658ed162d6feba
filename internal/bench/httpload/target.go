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

// A Target sends one request over and over, several by weight, or those of a file. It is made by
// [New].
type Target struct {
	// Immutable after New.
	name        string
	endpoint    Endpoint
	requests    []request
	fresh       bool // a connection for each request
	timeout     time.Duration
	connections int
	streams     int     // callers of a connection
	links       []*link // of HTTP/2; empty: HTTP/1.1
	opening     *Opening
	firstByte   []*load.Buckets // the callers are dealt out to them

	// If there are several requests, or places for keys.
	chooses  bool
	weights  mix.Weights
	keys     clientload.Keys
	recorder *mix.Recorder // nil: there is one request

	sequel *sequel      // nil: no requests of a file are sent
	turn   atomic.Int64 // of the next request of the file

	mu      sync.Mutex
	callers []*caller // guarded by mu
	before  *Tally    // guarded by mu: at the start of the window
	after   Tally     // guarded by mu: when it was read last
}

// Name returns method and URL, without what may be secret: user, password and
// query.
func (t *Target) Name() string { return t.name }

// Address returns where connections lead to, in the terms of package net.
func (t *Target) Address() (network, address string) { return t.endpoint.Network, t.endpoint.Address }

// NewCaller opens a connection, unless each request has one of its own, or callers share it.
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

// A caller is one connection, opened again when it has ended.
type caller struct {
	target    *Target
	firstByte *load.Buckets
	conn      Conn
	link      *link // in place of conn; nil: HTTP/1.1

	// Owned by the goroutine that calls Do.
	chooser *clientload.Chooser // nil: there is one request without places
	record  *mix.Record         // nil: there is one request
	request *request            // to be sent
	message []byte              // the same, with a key or a target
	logged  int                 // another right status; 0: none
	memory  []byte              // that a message may be in
	key     []byte
	parser  *parser // HTTP/2
	open    bool
	served  bool      // a response has come over this connection
	sent    time.Time // when sending the last request began
	armed   time.Time // until then the deadline of the connection is late enough
	counts  counts
	status  int   // of the response to the last request; 0: it got none
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

// next chooses a request and returns its number.
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
		// As other clients do: the server has closed a connection that was idle.
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
	if surplus > 0 { // which of them answers the request is unknown
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

// arm bounds a request. Setting a deadline takes a good part of a microsecond, so
// it is set later than asked for, by an eighth of the timeout, and serves all
// requests that begin within that time.
func (c *caller) arm(now time.Time) error {
	timeout := c.target.timeout
	if timeout == 0 || now.Before(c.armed) {
		return nil
	}
	slack := timeout / 8
	c.armed = now.Add(slack)
	return c.conn.Net().SetDeadline(now.Add(timeout + slack))
}

// goneErrors are what a connection has that the server has closed. Over TLS without a
// notice it is ErrUnexpectedEOF.
var goneErrors = []error{io.EOF, io.ErrUnexpectedEOF, syscall.ECONNRESET, syscall.EPIPE}

// stale reports whether the server has closed the connection without a byte of a
// response, and the request may be sent again. It closes the connection then.
func (c *caller) stale(err error) bool {
	gone := slices.ContainsFunc(goneErrors, func(e error) bool { return errors.Is(err, e) })
	if !gone || !c.served || !c.request.repeatable || c.conn.Began() {
		return false
	}
	c.hangUp()
	return true
}
