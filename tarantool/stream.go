package tarantool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// State of a connection (streams, prepared statements) is pinned to it (pipe.Pin): a pinned call is
// sent on it or fails as NotSent. The transaction of a stream ends with its connection; a statement
// is prepared on another one. After a Begin without an answer only a rollback is permitted, because
// other requests might be committed as single statements.

// ErrConnectionLost means that the connection of a stream has ended, and with it the transaction,
// which the server has rolled back unless its commit was in flight.
var ErrConnectionLost = pipe.ErrPinLost

// ErrStreamInDoubt means that it is unknown whether a stream is in a transaction, because a Begin
// got no answer. Any other request might be committed separately. A Rollback resolves the doubt.
var ErrStreamInDoubt = errors.New("a begin got no answer; only a rollback is permitted")

// A Stream is a sequence of requests that the server executes one after another, and that may be a
// transaction. It uses one connection and ends with it. It needs Tarantool 2.10.
//
// All methods are safe for concurrent use; requests are executed in the order in which Do or Start
// was called. If the server refuses a request because its schema has changed, the request is
// retried if it is the last one of the stream; otherwise [IsCode] reports
// [iproto.CodeWrongSchemaVersion] for its error.
//
// A transaction that is no longer needed must be ended by Rollback, because the server keeps it
// until the connection ends or TxOptions.Timeout has passed.
type Stream struct {
	// Immutable.
	client *Client
	way    route

	mu sync.Mutex
	// Guarded by mu.
	doubt bool
	sent  uint64 // number of requests, which is the index of the last one
}

// Isolation determines what a transaction sees of other transactions.
type Isolation uint8

// The levels of isolation (Tarantool documentation, "Transaction isolation").
const (
	IsolationDefault       Isolation = 0 // the level set by box.cfg
	IsolationReadCommitted Isolation = 1 // sees changes that are prepared but not yet written
	IsolationReadConfirmed Isolation = 2
	IsolationBestEffort    Isolation = 3
	IsolationLinearizable  Isolation = 4
)

// TxOptions are the options of a transaction. With the zero value, the server uses its defaults.
type TxOptions struct {
	Isolation Isolation
	// Timeout is the time after which the server rolls the transaction back.
	Timeout time.Duration
	// Synchronous makes the commit wait for the quorum of replicas. It needs Tarantool 3.2.
	Synchronous bool
}

// Stream opens a stream.
func (c *Client) Stream(ctx context.Context) (*Stream, error) {
	if err := c.knowServer(ctx, "stream"); err != nil {
		return nil, err
	}
	if err := c.needs(box.FeatureStreams); err != nil {
		return nil, c.fail.NotSent("stream", err)
	}
	pin, err := c.engine.Pin(ctx)
	if err != nil {
		return nil, c.fail.Named("stream", err)
	}
	return &Stream{client: c, way: route{pin: pin, stream: c.streams.Add(1)}}, nil
}

// Do is like [Client.Do], in the stream.
func (s *Stream) Do(ctx context.Context, dst any, req Request) error {
	way, err := s.next()
	if err != nil {
		return err
	}
	return s.client.exec(ctx, dst, req, way)
}

// Start is like [Client.Start], in the stream.
func (s *Stream) Start(ctx context.Context, req Request) Future {
	way, err := s.next()
	if err != nil {
		return failed(err)
	}
	return s.client.do(ctx, req, way)
}

// next returns the route of the next request.
func (s *Stream) next() (route, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doubt {
		return route{}, s.client.fail.NotSent("stream", ErrStreamInDoubt)
	}
	return s.place(), nil
}

// place returns the route of a request that is sent after all previous ones. The caller holds mu.
func (s *Stream) place() route {
	s.sent++
	way := s.way
	way.of, way.place = s, s.sent
	return way
}

// isLast reports whether no request was sent after the one with the given index. A request that was
// retried after others would be executed out of order, and after a commit or a rollback it would be
// committed separately.
func (s *Stream) isLast(place uint64) bool {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.sent == place
}

func (s *Stream) setDoubt(on bool) {
	s.mu.Lock()
	defer s.mu.Unlock()
	s.doubt = on
}

// Begin begins a transaction, and returns when the server has done so: requests after a failed
// begin would be committed separately.
func (s *Stream) Begin(ctx context.Context, o TxOptions) error {
	if o.Synchronous {
		if err := s.client.needs(box.FeatureIsSync); err != nil {
			return s.client.fail.NotSent("begin", err)
		}
	}
	err := s.Do(ctx, nil, txRequest{code: box.CodeBegin, begin: box.Begin{
		Timeout: o.Timeout.Seconds(), Isolation: uint8(o.Isolation), IsSync: o.Synchronous,
	}})
	if slipstream.OutcomeOf(err) == slipstream.MaybeExecuted {
		s.setDoubt(true)
	}
	return err
}

// Commit ends the transaction. If the outcome of its error is Refused, the transaction was rolled
// back; if it is MaybeExecuted, the result is unknown.
func (s *Stream) Commit(ctx context.Context) error {
	return s.Do(ctx, nil, txRequest{code: box.CodeCommit})
}

// Rollback ends the transaction and undoes its changes. Without a transaction, it does nothing.
func (s *Stream) Rollback(ctx context.Context) error {
	s.mu.Lock()
	way := s.place() // even if the stream is in doubt
	s.mu.Unlock()
	err := s.client.exec(ctx, nil, txRequest{code: box.CodeRollback}, way)
	if err == nil {
		s.setDoubt(false)
	}
	return err
}

// Transaction runs f in a transaction, which is committed if f returns nil and rolled back
// otherwise. If the server refuses the commit, or a request of f, because of a conflict with
// another transaction or because the schema has changed, everything is repeated, up to
// Options.Retries times. So f must not have other effects that must not happen twice.
func (c *Client) Transaction(ctx context.Context, o TxOptions, f func(s *Stream) error) error {
	for made := 1; ; made++ {
		err := c.transactionOnce(ctx, o, f)
		again := IsCode(err, iproto.CodeTransactionConflict) || IsCode(err, iproto.CodeWrongSchemaVersion)
		if !again || slipstream.OutcomeOf(err) == slipstream.MaybeExecuted || !c.retry.Next(ctx, made, time.Time{}) {
			return err
		}
	}
}

// rollbackTime is how long a rollback may take if its caller has no time left.
const rollbackTime = time.Second

func (c *Client) transactionOnce(ctx context.Context, o TxOptions, f func(s *Stream) error) (err error) {
	s, err := c.Stream(ctx)
	if err != nil {
		return err
	}
	ended := false // the server has no transaction
	defer func() { // even if f panics
		if ended {
			return
		}
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
		defer cancel()
		failed := s.Rollback(after)
		for failed != nil && slipstream.OutcomeOf(failed) == slipstream.Overloaded && attempt.Sleep(after, leastInterval) {
			failed = s.Rollback(after)
		}
		if failed != nil && err != nil && !errors.Is(failed, ErrConnectionLost) {
			err = fmt.Errorf("%w; rollback: %w", err, failed)
		}
	}()
	if err = s.Begin(ctx, o); err != nil {
		ended = !arrived(err) || slipstream.OutcomeOf(err) == slipstream.Refused
		return err
	}
	if err = f(s); err != nil {
		return err
	}
	err = s.Commit(ctx)
	ended = arrived(err)
	return err
}

// arrived reports whether a request that ended with this error may have reached the server.
func arrived(err error) bool {
	switch slipstream.OutcomeOf(err) {
	case slipstream.NotSent, slipstream.Overloaded, slipstream.Closed:
		return false
	}
	return true
}

// txRequest is a request that begins or ends a transaction.
type txRequest struct {
	code  box.Code
	begin box.Begin
}

func (r txRequest) encode(b []byte, x encoding) ([]byte, error) {
	from := len(b)
	b = x.begin(b, r.code)
	switch r.code {
	case box.CodeBegin:
		b = r.begin.Append(b)
	case box.CodeCommit:
		b = box.AppendCommit(b, r.begin.IsSync)
	default:
		b = box.AppendRollback(b)
	}
	return box.EndRequest(b, from), nil
}

func (r txRequest) about() requestInfo { return requestInfo{code: r.code} }
