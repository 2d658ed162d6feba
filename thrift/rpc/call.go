package rpc

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"net/netip"
	"runtime/debug"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

//   - After an exception that does not come from a handler (an unknown function, an unreadable message), Kitex drops
//     all further data on the connection. So nothing more is sent: the scanner retires the connection.
//   - The outcome of a call without a reply is NotSent, or MaybeExecuted once a byte has been written; in the latter
//     case, the call is retried only if the function is idempotent. Refused means that the function is unknown, or that
//     a server of this package reported that it did not execute the call.
//   - The deadline is written into the header just before the call is sent, after any wait for a connection. A
//     handler's context has the deadline and the persistent metadata of its call, so the calls that it makes pass them
//     on.

// largeAnswer is the size from which an answer is charged to the budget for large answers.
const largeAnswer = 64 << 10

// call is a call that a server answers. It is the handler's context, so it is not reused.
type call struct {
	limit loop.Deadline

	// Immutable after open and session.later.
	server   *Server
	session  *session
	function *function // nil if it is unknown
	name     string    // the function's name
	format   frame.Format
	seq      int32
	oneway   bool
	serial   bool // the connection is paused until the call is answered
	anyOrder bool // its answer may overtake others
	start    time.Time
	received int // bytes
	peer     netip.AddrPort
	tls      *tls.ConnectionState
	meta     []Meta

	// Owned by the turn until the call is passed to a worker, then by the worker until it completes
	// the ticket, then by the turn.
	payload  *loop.Payload // a large message; nil after it has been decoded
	whole    []byte        // a large message whose length was not known in advance
	exchange Exchange
	result   thrift.Struct
	status   *StatusError
	failure  *thrift.ApplicationException
	refused  string // the reason why the call is not executed
	broken   error  // the error if the message was not a valid call
	counted  bool   // the call is counted in Server.calls
	out      []byte // the answer; nil for none
	large    int64  // bytes of the answer counted in session.complete

	deferred loop.Deferred // owned by the connection
	ticket   loop.Ticket   // immutable after session.later
}

type callKey struct{}

// Deadline implements [context.Context].
func (k *call) Deadline() (time.Time, bool) { return k.limit.Deadline() }

// Done implements [context.Context].
func (k *call) Done() <-chan struct{} { return k.limit.Done() }

// Err implements [context.Context].
func (k *call) Err() error { return k.limit.Err() }

// Value implements [context.Context].
func (k *call) Value(key any) any {
	if key == (callKey{}) {
		return k
	}
	return k.limit.Value(key)
}

// open reads the part of a message before its arguments, which are at m.Payload[body:].
func (k *call) open(b []byte) (m frame.Message, body int, err error) {
	if m, err = frame.Open(b); err != nil {
		return m, 0, err
	}
	var head thrift.Message
	if body = readMessage(m.Payload, m.Format, &head); body < 0 {
		return m, 0, thrift.Err(body, 0)
	}
	if head.Type != thrift.Call && head.Type != thrift.Oneway {
		return m, 0, unexpected(head.Type)
	}
	k.format, k.seq, k.anyOrder = m.Format, head.Seq, m.Info.Flags&frame.FlagAnyOrder != 0
	k.limit.At = k.start.Add(k.server.timeout(&m.Info))
	service, name := split(head.Name)
	multiplexed := service != nil
	if !multiplexed {
		service = m.Info.String(frame.KeyService)
	}
	if k.function, k.failure = k.server.registry.find(service, name, multiplexed); k.failure != nil {
		k.server.figures.unknown.Add(1)
		k.name, k.oneway = string(name), head.Type == thrift.Oneway
		return m, body, nil
	}
	if k.function.stream != nil {
		k.server.figures.unknown.Add(1)
		k.name, k.failure = k.function.Name, unknown("%s is a streaming function; open a stream to call it", k.function.Name)
		return m, body, nil
	}
	k.name, k.oneway, k.meta = k.function.Name, k.function.Oneway, readMeta(&m.Info)
	return m, body, nil
}

// timeout returns the time limit of a call.
func (s *Server) timeout(info *frame.Info) time.Duration {
	limit := s.config.Timeout
	if text := info.Int(frame.KeyTimeout); len(text) > 0 && len(text) < 10 {
		if ms, err := strconv.Atoi(string(text)); err == nil && ms > 0 {
			limit = time.Duration(ms) * time.Millisecond
		}
	}
	if limit < 0 {
		return noDeadline
	}
	return limit
}

// noDeadline is a timeout that no call reaches.
const noDeadline = 1 << 60

// admitted counts a call in progress. If there are too many, it refuses the call and returns false.
func (k *call) admitted() bool {
	k.counted = k.server.calls.Add(1) <= int64(k.server.config.MaxCalls)
	if !k.counted {
		k.server.calls.Add(-1)
		k.refuse("the server has too many calls in progress")
	}
	return k.counted
}

// leave undoes admitted after the call has ended.
func (k *call) leave() {
	if k.counted {
		k.counted = false
		k.server.calls.Add(-1)
	}
}

// weight returns the memory held by the call's message while the call is in progress.
func (k *call) weight() int {
	if k.payload != nil {
		return 2 * k.payload.Memory() // the message and its decoded arguments
	}
	return k.received + cap(k.whole)
}

// decode reads a large message.
func (k *call) decode() {
	b := k.whole
	if k.payload != nil {
		b = k.payload.Bytes()
		defer k.payload.Release()
	}
	m, body, err := k.open(b)
	if err != nil {
		k.broken = err
		return
	}
	if k.failure == nil && k.admitted() {
		k.read(&thrift.Reader{MaxMemory: k.server.config.MaxMemory}, m.Payload, body)
	}
	k.whole = nil
}

// read reads the arguments.
func (k *call) read(r *thrift.Reader, b []byte, off int) {
	k.exchange = k.function.New()
	if err := readStruct(r, b, off, k.format, k.exchange.Arguments()); err != nil {
		k.server.figures.malformed.Add(1)
		k.fail(thrift.ProtocolError, "arguments of %s: %v", k.name, err)
	}
}

// fail sets an exception as the answer.
func (k *call) fail(kind int32, format string, args ...any) {
	k.failure = &thrift.ApplicationException{Kind: kind, Message: fmt.Sprintf(format, args...)}
}

// refuse sets an answer that reports that the call was not executed.
func (k *call) refuse(why string) {
	k.server.figures.refused.Add(1)
	k.refused, k.failure = why, refusal(why)
}

// Work implements [loop.Job].
func (k *call) Work() {
	defer k.server.jobs.Done()
	if k.exchange == nil {
		k.decode()
	}
	if k.broken == nil {
		if k.failure == nil {
			k.handle()
		}
		k.answer()
	}
	k.leave()
	k.ticket.Complete()
}

// handle calls the handler, unless the deadline has passed.
func (k *call) handle() {
	if !time.Now().Before(k.limit.At) {
		k.refuse("its deadline had passed")
		return
	}
	defer k.limit.End()
	defer func() {
		if v := recover(); v != nil {
			k.server.figures.panics.Add(1)
			k.server.warn("a handler panicked", "service", k.function.service, "function", k.name, "panic", v, "stack", string(debug.Stack()))
			k.fail(thrift.InternalError, "the handler of %s panicked", k.name)
		}
	}()
	result, err := k.exchange.Handle(k)
	k.server.figures.done.Add(1)
	if err == nil {
		k.result = result
		return
	}
	if k.status = statusOf(err); k.status != nil && k.format.HasHeader() {
		return
	}
	if e, ok := errors.AsType[*thrift.ApplicationException](err); ok && e.Kind != KindRefused {
		k.failure = e
		return
	}
	k.fail(thrift.InternalError, "%s", err.Error())
}

// answer encodes the answer and calls ServerConfig.OnCall.
func (k *call) answer() {
	if k.failure != nil && k.refused == "" {
		k.server.figures.failed.Add(1)
	}
	if !k.oneway {
		k.encode()
	}
	if n := int64(len(k.out)); n >= largeAnswer {
		k.hold(n)
	}
	if k.server.config.OnCall != nil {
		k.report()
	}
}

// hold counts the bytes of a large answer that waits to be sent.
func (k *call) hold(n int64) {
	k.large += n
	k.session.hold(n)
}

// encode encodes the answer into k.out.
func (k *call) encode() {
	if k.failure == nil && k.result == nil && k.status == nil {
		k.fail(thrift.MissingResult, "the handler of %s returned no result", k.name)
	}
	if k.failure == nil && k.result == nil { // for a status, the reply has no fields
		k.result = noFields{}
	}
	if k.failure == nil {
		err := k.encodeAs(thrift.Reply, k.result)
		if err == nil {
			err = k.server.admitsAnswer(len(k.out))
		}
		if err == nil {
			return
		}
		k.free()
		k.fail(thrift.InternalError, "the answer of %s cannot be sent: %v", k.name, err)
	}
	if err := k.encodeAs(thrift.Exception, k.failure); err != nil {
		// Only a text larger than 2 GiB can get here.
		k.free()
		k.fail(thrift.InternalError, "the answer of %s cannot be sent", k.name)
		_ = k.encodeAs(thrift.Exception, k.failure)
	}
}

// encodeAs encodes a message that contains a struct. If encoding the struct panics, as for a list with a nil element,
// it returns an error.
func (k *call) encodeAs(t thrift.MessageType, v thrift.Struct) (err error) {
	defer func() {
		if p := recover(); p != nil {
			k.server.figures.panics.Add(1)
			k.server.warn("encoding a result panicked", "function", k.name, "panic", p, "stack", string(debug.Stack()))
			err = errResultPanicked
		}
	}()
	compact, ok := v.(thrift.CompactStruct)
	if k.format.Compact && !ok {
		return errNoCompact
	}
	b := buf.Get(headRoom + len(k.name) + v.SizeThrift())
	b, inner, err := k.beginMessage(b)
	switch {
	case err != nil:
	case k.format.Protobuf:
		b, err = appendProtobuf(appendProtobufHead(b, k.name, t, k.seq), v)
	default:
		b = appendMessage(b, k.format.Compact, k.name, t, k.seq)
		if k.format.Compact {
			b = compact.AppendCompact(b)
		} else {
			b = v.AppendThrift(b)
		}
		if k.server.draining.Load() && !k.format.HasHeader() {
			b = appendGoodbye(b, k.format.Compact)
		}
	}
	if err == nil {
		err = endMessage(b, k.format, 0, inner)
	}
	k.out = b
	return err
}

// errResultPanicked means that encoding a result panicked.
var errResultPanicked = errors.New("encoding it panicked")

// errNoCompact means that the generated code has no methods for the Compact protocol.
var errNoCompact = errors.New("the service's code was generated without the Compact protocol")

// admitsAnswer returns an error if an answer of n bytes exceeds a limit.
func (s *Server) admitsAnswer(n int) error {
	switch {
	case n > s.config.MaxMessage:
		return fmt.Errorf("it is %d bytes long; the limit is %d", n, s.config.MaxMessage)
	case n >= largeAnswer && !s.large.Admits(int64(n)):
		return errors.New("too many bytes of large answers wait for clients that do not read them")
	}
	return nil
}

// headRoom is the number of bytes that most messages need in addition to the struct and the function's name.
const headRoom = 64

// beginMessage appends the part of a message before its struct. inner is the offset of the inner frame.
func (k *call) beginMessage(b []byte) (out []byte, inner int, err error) {
	if k.format.HasHeader() {
		w := frame.BeginHeader(b, 0, k.seq, k.format.Compact)
		if k.status != nil {
			writeStatus(&w, k.status)
		}
		if k.refused != "" {
			w.String(keyRefused, k.refused)
		}
		if k.server.draining.Load() {
			w.String(frame.KeyReset, "1")
		}
		if b, err = w.End(); err != nil {
			return b, 0, err
		}
		inner = len(b)
	}
	if k.format.Transport == frame.Framed || k.format.Transport == frame.HeaderFramed {
		b = append(b, 0, 0, 0, 0)
	}
	return b, inner, nil
}

// Write implements [loop.Reply].
func (k *call) Write(c *loop.Conn) {
	if k.serial {
		c.Pause(false)
	}
	if k.broken != nil {
		k.session.malformed(c, k.broken)
		return
	}
	k.session.last = k.format
	k.append(c)
}

// Drop implements [loop.Reply].
func (k *call) Drop() { k.free() }

// append appends the answer to the output.
func (k *call) append(c *loop.Conn) {
	n := len(k.out)
	if n == 0 {
		return
	}
	o := c.Output()
	c.Spend(1 + n>>12)
	if n < linkFrom {
		o.B = append(o.B, k.out...)
		k.free()
		return
	}
	o.LinkOwned(k.out, answerMemory(k.out))
	k.out = nil
	if k.large > 0 {
		o.Large(n)
		k.hold(-k.large)
	}
}

// linkFrom is the size from which an answer is sent without copying it.
const linkFrom = 8 << 10

// answerMemory is the buffer of an answer.
type answerMemory []byte

// Release implements [loop.Owner].
func (m answerMemory) Release() { buf.Put(m) }

// free releases the buffer of the answer.
func (k *call) free() {
	if k.out != nil {
		buf.Put(k.out)
		k.out = nil
	}
	if k.large > 0 {
		k.hold(-k.large)
	}
}

// noFields is a struct without fields.
type noFields struct{}

func (noFields) SizeThrift() int               { return 1 }
func (noFields) AppendThrift(b []byte) []byte  { return append(b, thrift.TypeStop) }
func (noFields) AppendCompact(b []byte) []byte { return append(b, thrift.TypeStop) }
func (noFields) ReadThrift(_ *thrift.Reader, b []byte, off, depth int) int {
	return thrift.Skip(b, off, thrift.TypeStruct, depth)
}
func (noFields) ReadCompact(_ *thrift.Reader, b []byte, off, depth int) int {
	return thrift.SkipCompact(b, off, thrift.CompactTypeStruct, depth)
}

// CallReport describes a call that a server has answered.
type CallReport struct {
	// Service and Method are empty if no service has the function; Name is the name that the client sent.
	Service, Method, Name string
	Peer                  netip.AddrPort // not valid for Unix sockets
	Format                string         // transport and protocol, such as "Framed, Binary"
	Start                 time.Time      // when the call was read
	Took                  time.Duration  // time until the answer was ready
	Received, Sent        int            // bytes
	// Err is the handler's error if the function does not declare it, or the reason why the call was not executed.
	// Otherwise it is nil.
	Err error
	// Refused is true if the call was not executed.
	Refused bool
}

// report calls ServerConfig.OnCall and recovers its panics.
func (k *call) report() {
	defer func() {
		if v := recover(); v != nil {
			k.server.warn("OnCall panicked", "panic", v, "stack", string(debug.Stack()))
		}
	}()
	r := CallReport{Name: k.name, Peer: k.peer, Format: k.format.String(), Start: k.start, Took: time.Since(k.start), Received: k.received, Sent: len(k.out), Refused: k.refused != ""}
	if k.function != nil {
		r.Service, r.Method = k.function.service, k.function.Name
	}
	switch {
	case k.failure != nil:
		r.Err = k.failure
	case k.status != nil:
		r.Err = k.status
	}
	k.server.config.OnCall(r)
}

// Peer describes the client of a call.
type Peer struct {
	Addr netip.AddrPort       // not valid for Unix sockets
	TLS  *tls.ConnectionState // nil without TLS; must not be modified
}

// PeerOf returns the client of the call whose handler received ctx. ok is false if ctx is not a handler's context.
func PeerOf(ctx context.Context) (p Peer, ok bool) {
	k, ok := ctx.Value(callKey{}).(inbound)
	if !ok {
		return p, false
	}
	_, p = k.inbound()
	return p, true
}

// inbound is the value of callKey in a handler's context: a call or a stream.
type inbound interface {
	inbound() ([]Meta, Peer)
}

func (k *call) inbound() ([]Meta, Peer) { return k.meta, Peer{k.peer, k.tls} }
