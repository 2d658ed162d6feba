package tarantool

import (
	"context"
	"errors"
	"fmt"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// ErrConnectionLost: the connection of a stream has ended, and with it the transaction, which
// the server rolled back unless its commit was under way.
var ErrConnectionLost = pipe.ErrPinLost

// ErrStreamInDoubt: whether a stream is in a transaction is not known, because a Begin got no
// answer. What would be sent next might commit by itself.
var ErrStreamInDoubt = errors.New("a begin got no answer; the stream cannot be used any more")

// A Stream is requests that the server runs one after the other, and that can be one
// transaction. It lives on one connection and ends with it. It needs Tarantool 2.10.
//
// Its methods may be called concurrently; requests are run in the order in which Do was called.
type Stream struct {
	// Immutable.
	client *Client
	way    route

	mu sync.Mutex
	// Guarded by mu.
	doubt bool
}

// Isolation is what a transaction sees of others.
type Isolation = iproto.Isolation

// The levels of isolation (Tarantool documentation, "Transaction isolation").
const (
	IsolationDefault       = iproto.IsolationDefault
	IsolationReadCommitted = iproto.IsolationReadCommitted
	IsolationReadConfirmed = iproto.IsolationReadConfirmed
	IsolationBestEffort    = iproto.IsolationBestEffort
	IsolationLinearizable  = iproto.IsolationLinearizable
)

// TxOptions say how a transaction runs. The zero value leaves all to the server.
type TxOptions struct {
	Isolation Isolation
	// Timeout is after which time the server rolls back.
	Timeout time.Duration
	// Synchronous lets the commit wait for the quorum of replicas. Tarantool 3.2.
	Synchronous bool
}

// Stream begins a stream.
func (c *Client) Stream(ctx context.Context) (*Stream, error) {
	if err := c.needs(iproto.FeatureStreams); err != nil {
		return nil, c.notSent("stream", err)
	}
	pin, err := c.engine.Pin(ctx)
	if err != nil {
		return nil, c.named("stream", err)
	}
	return &Stream{client: c, way: route{pin: pin, stream: c.streams.Add(1)}}, nil
}

// Exec is [Client.Exec] in the stream.
func (s *Stream) Exec(ctx context.Context, dst any, req Request) error {
	if err := s.usable(); err != nil {
		return err
	}
	return s.client.exec(ctx, dst, req, s.way)
}

// Do is [Client.Do] in the stream.
func (s *Stream) Do(ctx context.Context, req Request) Future {
	if err := s.usable(); err != nil {
		return failed(err)
	}
	return s.client.do(ctx, req, s.way)
}

func (s *Stream) usable() error {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.doubt {
		return s.client.notSent("stream", ErrStreamInDoubt)
	}
	return nil
}

// Begin begins a transaction, and returns when the server has: what is sent behind a begin
// that fails would commit by itself.
func (s *Stream) Begin(ctx context.Context, o TxOptions) error {
	if o.Synchronous {
		if err := s.client.needs(iproto.FeatureIsSync); err != nil {
			return s.client.notSent("begin", err)
		}
	}
	err := s.Exec(ctx, nil, txRequest{code: iproto.CodeBegin, begin: iproto.Begin{
		Timeout: o.Timeout.Seconds(), Isolation: o.Isolation, IsSync: o.Synchronous,
	}})
	if slipstream.OutcomeOf(err) == slipstream.MaybeExecuted {
		s.mu.Lock()
		s.doubt = true
		s.mu.Unlock()
	}
	return err
}

// Commit ends the transaction. Refused: it was rolled back. MaybeExecuted: nobody knows.
func (s *Stream) Commit(ctx context.Context) error {
	return s.Exec(ctx, nil, txRequest{code: iproto.CodeCommit})
}

// Rollback ends the transaction and takes back what it did.
func (s *Stream) Rollback(ctx context.Context) error {
	return s.Exec(ctx, nil, txRequest{code: iproto.CodeRollback})
}

// Transaction runs f in a transaction: it commits if f returns nil and rolls back otherwise.
// If the server refuses the commit, or a request of f, because of a conflict with another
// transaction, all is done again, up to Options.Retries times, so f must not do anything
// else that cannot be done twice.
func (c *Client) Transaction(ctx context.Context, o TxOptions, f func(s *Stream) error) error {
	for attempt := 1; ; attempt++ {
		err := c.transactionOnce(ctx, o, f)
		if !IsCode(err, CodeTransactionConflict) || slipstream.OutcomeOf(err) == slipstream.MaybeExecuted ||
			attempt > c.retries || !c.pause(ctx, attempt, time.Now()) {
			return err
		}
		c.repeated.Add(1)
	}
}

// rollbackTime is how long a rollback may take whose caller has no time left.
const rollbackTime = time.Second

func (c *Client) transactionOnce(ctx context.Context, o TxOptions, f func(s *Stream) error) (err error) {
	s, err := c.Stream(ctx)
	if err != nil {
		return err
	}
	if err := s.Begin(ctx, o); err != nil {
		return err
	}
	committing := false
	defer func() { // also when f panics
		if committing {
			return
		}
		after, cancel := context.WithTimeout(context.WithoutCancel(ctx), rollbackTime)
		defer cancel()
		if failed := s.Rollback(after); failed != nil && err != nil && !errors.Is(failed, ErrConnectionLost) {
			err = fmt.Errorf("%w; and the rollback: %w", err, failed)
		}
	}()
	if err = f(s); err != nil {
		return err
	}
	committing = true
	return s.Commit(ctx)
}

// txRequest begins or ends a transaction.
type txRequest struct {
	code  iproto.Code
	begin iproto.Begin
}

func (r txRequest) encode(b []byte, x encoding) ([]byte, error) {
	from := len(b)
	b = x.begin(b, r.code)
	switch r.code {
	case iproto.CodeBegin:
		b = r.begin.Append(b)
	case iproto.CodeCommit:
		b = iproto.AppendCommit(b, r.begin.IsSync)
	default:
		b = iproto.AppendRollback(b)
	}
	return iproto.EndRequest(b, from), nil
}

func (r txRequest) about() requestInfo { return requestInfo{code: r.code} }
