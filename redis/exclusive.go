package redis

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"sync/atomic"
	"syscall"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// A blocking command (BLPOP, or a command that the table does not list and that COMMAND INFO
// reports as blocking), a Session, and Watch lease a dedicated connection from a pool
// (docs/decisions/0009-exclusive-connections.md). Its caller writes and reads it; it has no
// goroutine. An idle connection is closed after a minute, by a timer that exists only while there
// are idle ones. A session checks before each command whether the server has hung up: if so,
// nothing is sent and nothing is in doubt.
//
// When the context ends while the command is blocked, the read deadline is moved into the past,
// CLIENT UNBLOCK is sent on the shared connection, and reading continues. If the reply is null, the
// call fails with the error of the context and the outcome Refused; if it is an element, that is
// the result. The connection returns to the pool only when both requests were answered.

// exclusive is a connection that belongs to one caller: for a blocking command, or for several
// commands that share a state. Its caller writes and reads it; it has no goroutine. See
// docs/decisions/0009.
type exclusive struct {
	// Immutable after openExclusive.
	conn net.Conn
	raw  syscall.RawConn // nil for TLS and connections of Options.Dialer
	id   int64           // the connection's ID at the server
	node *node

	// Owned by the caller that uses the connection.
	scanner *resp.Scanner
	in      []byte // received data; the part from begin on is unread
	begin   int
	out     []byte
	used    time.Time // when it was returned
	broken  error     // why it can no longer be used
	dirty   bool      // the state is no longer that after the greeting

	// Atomics.
	left atomic.Bool // the connection was closed because its node has left
}

// Bounds for growing and shrinking the buffer.
const (
	exclusiveRead = 4 << 10
	exclusiveKept = 64 << 10
	// growBy bounds how far the buffer grows beyond what has arrived, so that a length announced by
	// a server does not allocate anything by itself.
	growBy = 1 << 20
)

// openExclusive dials and greets.
func openExclusive(ctx context.Context, n *node) (*exclusive, error) {
	o := &n.aside
	ctx, cancel := context.WithTimeout(ctx, o.dialTimeout())
	defer cancel()
	conn, err := n.dial(ctx, o)
	if err != nil {
		return nil, err
	}
	x := &exclusive{conn: conn, node: n, scanner: newProtocol(o).NewScanner().(*scanner).Scanner}
	switch c := conn.(type) {
	case *net.TCPConn:
		x.raw, _ = c.SyscallConn()
	case *net.UnixConn:
		x.raw, _ = c.SyscallConn()
	}
	if err := x.greet(ctx); err != nil {
		conn.Close()
		return nil, err
	}
	return x, nil
}

// greet makes the connection ready and gets its ID.
func (x *exclusive) greet(ctx context.Context) error {
	deadline, _ := ctx.Deadline()
	if err := x.conn.SetDeadline(deadline); err != nil {
		return err
	}
	// With the deadline only, a caller whose context is canceled would keep waiting.
	stop := context.AfterFunc(ctx, func() { x.conn.SetDeadline(longAgo) })
	defer stop()
	rest, err := greet(ctx, x.conn, &x.node.aside)
	if err != nil {
		return errors.Join(err, context.Cause(ctx))
	}
	x.in = append(x.in, rest...)
	if _, err := x.conn.Write([]byte("*2\r\n$6\r\nCLIENT\r\n$2\r\nID\r\n")); err != nil {
		return err
	}
	frame, err := x.read()
	if err != nil {
		return fmt.Errorf("reply to CLIENT ID: %w", err)
	}
	if x.id, err = intReply(frame); err != nil {
		x.id = 0 // a server that does not report it cannot unblock the connection
	}
	if !stop() {
		return context.Cause(ctx) // the deadline may be set at any moment
	}
	return x.conn.SetDeadline(time.Time{})
}

// longAgo is a deadline that ends reads and writes in progress.
var longAgo = time.Unix(1, 0)

// healthy reports whether the idle connection is still open and silent, as far as that can be
// determined without a request.
func (x *exclusive) healthy() bool {
	if x.broken != nil || x.begin < len(x.in) {
		return false
	}
	if x.raw == nil {
		return time.Since(x.used) < time.Second // connections that were idle for longer are not reused
	}
	return silent(x.raw)
}

// errInterrupted is in the chain of the error if the caller's context has ended a read.
var errInterrupted = errors.New("interrupted")

// send writes a request. If it fails, the outcome says whether the server may have received
// it.
func (x *exclusive) send(frame []byte) (slipstream.Outcome, error) {
	limit := time.Time{}
	if stall := x.node.aside.stallTimeout(); stall > 0 {
		limit = time.Now().Add(stall)
	}
	if err := x.conn.SetWriteDeadline(limit); err != nil {
		return x.outcomeOfLost(err), x.breaks(err)
	}
	n, err := x.conn.Write(frame)
	switch {
	case err == nil:
		return slipstream.Executed, nil
	case n > 0:
		return slipstream.MaybeExecuted, x.breaks(err)
	}
	return x.outcomeOfLost(err), x.breaks(err)
}

// outcomeOfLost returns the outcome of a request that was not sent because its connection is
// unusable. Leased connections are closed by Close and Shutdown, and when their node leaves.
func (x *exclusive) outcomeOfLost(err error) slipstream.Outcome {
	if errors.Is(err, net.ErrClosed) && !x.left.Load() {
		return slipstream.Closed
	}
	return slipstream.NotSent
}

// look checks whether the connection was lost while it was idle, as far as that can be determined
// without a request.
func (x *exclusive) look() error {
	if x.broken == nil && x.raw != nil && x.begin == len(x.in) {
		if err := hungUp(x.raw); err != nil {
			return x.breaks(err)
		}
	}
	return x.broken
}

func (x *exclusive) breaks(err error) error {
	x.broken = err
	return err
}

// receive waits for the next reply, until ctx ends and at most for limit, unless that is 0. After
// an error with errInterrupted in its chain, the connection is unchanged and the reply may still
// come. After any other error, the connection is unusable.
//
// The reply is valid until the next call of a method.
func (x *exclusive) receive(ctx context.Context, limit time.Duration) ([]byte, error) {
	deadline := time.Time{}
	if limit > 0 {
		deadline = time.Now().Add(limit)
	}
	if err := x.conn.SetReadDeadline(deadline); err != nil {
		return nil, x.breaks(err)
	}
	if ctx.Done() == nil {
		return x.received(x.read())
	}
	// Ends immediately; waited for below, so that it cannot affect a later read.
	woken := make(chan struct{})
	stop := context.AfterFunc(ctx, func() {
		defer close(woken)
		_ = x.conn.SetReadDeadline(longAgo)
	})
	frame, err := x.read()
	if !stop() {
		<-woken
	}
	if err != nil && ctx.Err() != nil && errors.Is(err, os.ErrDeadlineExceeded) {
		return nil, errInterrupted
	}
	return x.received(frame, err)
}

func (x *exclusive) received(frame []byte, err error) ([]byte, error) {
	switch {
	case err == nil:
		return frame, nil
	case errors.Is(err, os.ErrDeadlineExceeded):
		err = ErrStalled
	case errors.Is(err, io.EOF):
		err = fmt.Errorf("connection closed by the server: %w", io.ErrUnexpectedEOF)
	}
	return nil, x.breaks(err)
}

// read returns the next reply.
func (x *exclusive) read() ([]byte, error) {
	for {
		frame, verdict, err := x.cut()
		if err != nil || verdict == resp.Done {
			return frame, err
		}
		// Pushes are skipped.
	}
}

// message returns the next message, reply or push.
func (x *exclusive) message() ([]byte, error) {
	frame, _, err := x.cut()
	return frame, err
}

// cut returns the next message and its kind.
func (x *exclusive) cut() ([]byte, resp.Verdict, error) {
	for {
		want := 0
		if x.begin < len(x.in) {
			n, verdict, err := x.scanner.Scan(x.in[x.begin:])
			if err != nil {
				return nil, verdict, fmt.Errorf("protocol: %w", err)
			}
			if verdict != resp.More {
				frame := x.in[x.begin : x.begin+n]
				x.begin += n
				return frame, verdict, nil
			}
			want = n
		}
		if err := x.fill(want); err != nil {
			return nil, resp.More, err
		}
	}
}

// fill reads once. The message that is arriving has want bytes or more.
func (x *exclusive) fill(want int) error {
	have := len(x.in) - x.begin
	switch {
	case have == 0 && cap(x.in) > exclusiveKept:
		x.in, x.begin = nil, 0
	case x.begin > 0:
		x.in = x.in[:copy(x.in, x.in[x.begin:])]
		x.begin = 0
	}
	size := max(exclusiveRead, min(want, have+growBy))
	if cap(x.in)-have < 1 || cap(x.in) < size {
		grown := make([]byte, have, max(size, 2*have))
		copy(grown, x.in)
		x.in = grown
	}
	n, err := x.conn.Read(x.in[have:cap(x.in)])
	x.in = x.in[:have+n]
	if n > 0 {
		return nil // an error will be returned again
	}
	if err == nil {
		err = io.ErrNoProgress
	}
	return err
}

// close ends the connection.
func (x *exclusive) close() {
	if x.broken == nil {
		x.broken = net.ErrClosed
	}
	_ = x.conn.Close()
}
