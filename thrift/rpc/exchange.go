package rpc

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// exchange is a call of a client, with all of its attempts. It is used only by the caller's goroutine.
type exchange struct {
	client     *Client
	in         *Invocation
	lane       *lane
	until      time.Time // the deadline
	idempotent bool
	loop       attempt.Loop
	message    []byte
	arguments  int   // offset of the arguments in message
	timeout    int   // offset of the deadline in message, or 0
	lent       *lent // nil if no attempt has sent message without copying it
	reply      int   // size of the last reply
}

// Call implements [Caller]. Errors are of type *slipstream.Error; they wrap a *thrift.ApplicationException or a
// *StatusError if the server answered with one.
func (c *Client) Call(ctx context.Context, in Invocation) error {
	size, err := sizeOf(&in)
	if err != nil {
		return c.fail.NotSent(in.Function.Name, err)
	}
	if err := c.enter(size); err != nil {
		return c.named(&in, err)
	}
	defer c.leave(size)
	if b := c.config.Budget; b != nil {
		b.Deposit()
	}
	x := exchange{client: c, in: &in, loop: attempt.Loop{Start: time.Now()}, idempotent: c.repeatable(&in)}
	x.until = x.loop.Start.Add(c.config.Timeout)
	if at, ok := ctx.Deadline(); ok && at.Before(x.until) {
		x.until = at
	}
	failure := x.run(ctx, size)
	if c.hooks.Observing() {
		o := slipstream.Observation{Op: in.Function.Name, Start: x.loop.Start, Requests: 1, Attempts: max(x.loop.Made, 1), RequestBytes: len(x.message), ReplyBytes: x.reply}
		if failure != nil {
			o.Err = failure
		}
		c.hooks.Observe(ctx, o)
	}
	x.free()
	if failure == nil {
		return nil
	}
	return failure
}

// sizeOf returns the size of the arguments and of the function's name. If computing it panics, it returns an error.
func sizeOf(in *Invocation) (size int, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the arguments cannot be encoded: %v", v)
		}
	}()
	return in.Args.SizeThrift() + len(in.Function.Name), nil
}

// named adds the name of the function to an error.
func (c *Client) named(in *Invocation, err error) *slipstream.Error {
	return c.fail.Named(in.Function.Name, err)
}

// run makes attempts until one is final. It returns nil if there is a result.
func (x *exchange) run(ctx context.Context, size int) *slipstream.Error {
	c := x.client
	if err := x.encode(ctx, size); err != nil {
		return x.invalid(err)
	}
	if n := len(x.message); n > c.config.MaxMessage {
		return x.invalid(fmt.Errorf("the message is %d bytes long; the limit is %d", n, c.config.MaxMessage))
	}
	x.lane = c.lane(x.in.Function, len(x.message))
	for x.loop.Made = 1; ; x.loop.Made++ {
		verdict, failure := x.attempt(ctx)
		if failure == nil || !c.retry.Again(ctx, &x.loop, failure, verdict) {
			return failure
		}
	}
}

// invalid returns the error of a call that cannot be sent.
func (x *exchange) invalid(err error) *slipstream.Error {
	return x.client.fail.NotSent(x.in.Function.Name, &InvalidCallError{err})
}

// encode encodes the message. If encoding the arguments panics, as for a list with a nil element, it returns an error.
func (x *exchange) encode(ctx context.Context, size int) (err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the arguments cannot be encoded: %v", v)
		}
	}()
	c, in, f := x.client, x.in, x.client.format
	name := in.Function.Name
	if len(name)+len(in.Service) > mostFunctionName {
		return fmt.Errorf("the service and function names have %d bytes; the limit is %d", len(name)+len(in.Service), mostFunctionName)
	}
	compact, ok := in.Args.(thrift.CompactStruct)
	if f.Compact && !ok {
		return errNoCompact
	}
	b := buf.Get(size + headRoom + 2*len(in.Service))
	inner := 0
	if f.HasHeader() {
		if b, err = x.header(ctx, b, size); err != nil {
			return err
		}
		inner = len(b)
	} else if c.config.Multiplexed {
		name = in.Service + ":" + name
	}
	if f.Transport == frame.Framed || f.Transport == frame.HeaderFramed {
		b = append(b, 0, 0, 0, 0)
	}
	t := thrift.Call
	if in.Function.Oneway {
		t = thrift.Oneway
	}
	switch {
	case f.Compact:
		b = frame.AppendCompactHead(b, name, byte(t))
		x.arguments = len(b)
		b = compact.AppendCompact(b)
	case f.Protobuf:
		b = appendProtobufHead(b, name, t, 0)
		x.arguments = len(b)
		if b, err = appendProtobuf(b, in.Args); err != nil {
			return err
		}
	default:
		b = thrift.AppendMessage(b, name, t, 0)
		x.arguments = len(b)
		b = in.Args.AppendThrift(b)
	}
	x.message = b
	return endMessage(b, f, 0, inner)
}

// header appends the header of a message.
func (x *exchange) header(ctx context.Context, b []byte, size int) ([]byte, error) {
	in := x.in
	w := frame.BeginHeader(b, frame.FlagAnyOrder, 0, x.client.format.Compact)
	if x.hasDeadline() {
		x.timeout = w.Fixed(frame.KeyTimeout, timeoutDigits)
	}
	w.Int(frame.KeyToService, in.Service)
	w.Int(frame.KeyToMethod, in.Function.Name)
	w.String(frame.KeyService, in.Service)
	if c := x.client; c.small.shared() == nil || size >= largeMessage || c.anyLarge.Load() {
		w.String(keyAnyOrder, "1")
	}
	writeMeta(&w, ctx)
	return w.End()
}

// hasDeadline reports whether the call has a deadline.
func (x *exchange) hasDeadline() bool {
	return !x.client.unbounded() || !x.until.Equal(x.loop.Start.Add(noDeadline))
}

// timeoutDigits is the number of digits for a timeout in a header, in milliseconds; a day needs as many.
const timeoutDigits = 8

// putTimeout writes the remaining time into the header. It reports whether any time remains.
func (x *exchange) putTimeout() bool {
	left := time.Until(x.until)
	if left <= 0 {
		return false
	}
	if x.timeout > 0 {
		ms := min(max(left.Milliseconds(), 1), 99_999_999)
		digits := x.message[x.timeout : x.timeout+timeoutDigits]
		for i := len(digits) - 1; i >= 0; i-- {
			digits[i] = byte('0' + ms%10)
			ms /= 10
		}
	}
	return true
}

// attempt sends the call and reads the reply.
func (x *exchange) attempt(ctx context.Context) (attempt.Verdict, *slipstream.Error) {
	c, l := x.client, x.lane
	to, late, err := l.take(ctx, x.until, x.idempotent)
	if err != nil {
		failure := c.named(x.in, err)
		return c.retry.Verdict(failure, x.idempotent), failure
	}
	if c.unbounded() && x.hasDeadline() {
		to.expect(x.until)
	}
	k := l.engine.Acquire()
	if !x.putTimeout() {
		err = l.fail(slipstream.NotSent, context.DeadlineExceeded)
	} else {
		if late || x.loop.Made > 1 { // the engine's timeout starts only now
			ctx = &bounded{ctx, x.until}
		}
		inline := k.Frame
		k.Pin, k.OneWay = to.pin, x.in.Function.Oneway
		if len(x.message) < largeMessage {
			k.Frame = x.message
		} else {
			k.SetBody(x.lend())
		}
		err = l.engine.Do(ctx, k)
		k.Frame = inline // the engine has copied the message, or the part before the arguments
	}
	l.release(to, x.in.Function.Oneway, err)
	defer k.Release()
	if err != nil {
		failure := c.named(x.in, err)
		if failure.Outcome == slipstream.NotSent && errors.Is(err, pipe.ErrPinLost) {
			return attempt.Immediately, failure // the connection started to close after it was chosen
		}
		return c.retry.Verdict(failure, x.idempotent), failure
	}
	if x.in.Function.Oneway {
		return attempt.Final, nil
	}
	x.reply = len(k.Reply())
	c.replied(x.in.Function, x.reply)
	return attempt.Final, x.decode(k)
}

// bounded is a context with an earlier deadline. The engine uses only the deadline, so there is no timer.
type bounded struct {
	context.Context
	at time.Time
}

// Deadline implements [context.Context].
func (b *bounded) Deadline() (time.Time, bool) { return b.at, true }

var readers = sync.Pool{New: func() any { return new(thrift.Reader) }}

// decode reads the reply into the result.
func (x *exchange) decode(k *pipe.Call) *slipstream.Error {
	c, name := x.client, x.in.Function.Name
	m, err := frame.Open(k.Reply())
	var head thrift.Message
	body := 0
	if err == nil {
		if body = readMessage(m.Payload, m.Format, &head); body < 0 {
			err = thrift.Err(body, 0)
		}
	}
	if err != nil { // cannot happen: the scanner has parsed it
		return c.fail.Executed(name, err)
	}
	if head.Type == thrift.Exception {
		return x.failed(m, body)
	}
	if status := readStatus(&m.Info); status != nil {
		return c.fail.Executed(name, status)
	}
	r := readers.Get().(*thrift.Reader)
	r.MaxMemory = c.config.MaxMemory
	err = readStruct(r, m.Payload, body, m.Format, x.in.Result)
	readers.Put(r)
	if err != nil {
		return c.fail.Executed(name, err)
	}
	return nil
}

// failed returns the error for a reply that is an exception.
func (x *exchange) failed(m frame.Message, body int) *slipstream.Error {
	c, name := x.client, x.in.Function.Name
	e, err := readException(m, body)
	if err != nil {
		return c.fail.Executed(name, err)
	}
	outcome := e.DeliveryOutcome()
	if e.Kind == KindRefused || m.Info.String(keyRefused) != nil {
		outcome = slipstream.Refused
	}
	return c.fail.With(name, outcome, &e)
}

// readStatus returns the application status in a header, or nil if there is none.
func readStatus(info *frame.Info) *StatusError {
	if !info.HasKeys() {
		return nil
	}
	text := info.String(frame.KeyStatus)
	if text == nil {
		return nil
	}
	code, err := strconv.ParseInt(string(text), 10, 32)
	if err != nil || code == 0 {
		return nil
	}
	s := &StatusError{Code: int32(code), Message: string(info.String(frame.KeyStatusMessage))}
	s.Details = readDetails(info.String(frame.KeyStatusExtra))
	return s
}
