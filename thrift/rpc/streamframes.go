package rpc

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/internal/buf"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// appendOpening appends the frame with which a client opens a stream.
func appendOpening(ctx context.Context, b []byte, f *StreamFunction, window int) ([]byte, error) {
	start := len(b)
	w := frame.BeginStream(b, 0, frame.StreamHeader)
	if at, ok := ctx.Deadline(); ok {
		w.Int(frame.KeyTimeout, strconv.FormatInt(max(time.Until(at).Milliseconds(), 1), 10))
	}
	w.Int(frame.KeyToService, f.Service)
	w.Int(frame.KeyToMethod, f.Name)
	w.String(frame.KeyService, f.Service)
	w.String(keyWindow, strconv.Itoa(window))
	writeMeta(&w, ctx)
	return endStreamFrame(w, start)
}

// endStreamFrame ends a frame without a payload that begins at start.
func endStreamFrame(w frame.Writer, start int) ([]byte, error) {
	b, err := w.End()
	if err != nil {
		return b, err
	}
	return b, frame.EndMessage(b, start, 0)
}

// appendNotice appends a meta frame with a key.
func appendNotice(b []byte, stream int32, key string, value int) []byte {
	start := len(b)
	w := frame.BeginStream(b, stream, frame.StreamMeta)
	w.String(key, strconv.Itoa(value))
	b, _ = endStreamFrame(w, start) // a notice is small, so this cannot fail
	return b
}

// messageOfStream returns the frame of a message in a buffer from package buf. If encoding the struct panics, as for a
// list with a nil element, it returns an error.
func messageOfStream(stream int32, m thrift.Struct, most int) (b []byte, err error) {
	defer func() {
		if v := recover(); v != nil {
			err = fmt.Errorf("the message cannot be encoded: %v", v)
		}
	}()
	n := frame.StreamDataHead + m.SizeThrift()
	if n > most {
		return nil, fmt.Errorf("the message is %d bytes long; the limit is %d", n, most)
	}
	b = m.AppendThrift(frame.AppendStreamData(buf.Get(n), stream))
	return b, frame.EndMessage(b, 0, 0)
}

// appendEnd appends the last frame that a side sends: a trailer or a reset, with an exception unless e is nil.
func appendEnd(b []byte, stream int32, kind byte, e *thrift.ApplicationException, keys func(*frame.Writer)) ([]byte, error) {
	start := len(b)
	w := frame.BeginStream(b, stream, kind)
	if keys != nil {
		keys(&w)
	}
	b, err := w.End()
	if err != nil {
		return b, err
	}
	if e != nil {
		b = e.AppendThrift(thrift.AppendMessage(b, "", thrift.Exception, stream))
	}
	return b, frame.EndMessage(b, start, 0)
}

// mostReason bounds the text with the reason for a stream's end.
const mostReason = 32 << 10

// endOf returns what the last frame carries for a handler's error: an exception or a status.
func endOf(err error) (e *thrift.ApplicationException, status *StatusError) {
	if err == nil {
		return nil, nil
	}
	if status = statusOf(err); status != nil {
		return nil, status
	}
	if own, ok := errors.AsType[*thrift.ApplicationException](err); ok && own.Kind != KindRefused {
		return own, nil
	}
	text := err.Error()
	return &thrift.ApplicationException{Kind: thrift.InternalError, Message: text[:min(len(text), mostReason)]}, nil
}

// resetReason returns the exception with the reason why this side resets a stream.
func resetReason(cause error) *thrift.ApplicationException {
	kind := int32(kindCanceled)
	switch {
	case errors.Is(cause, context.DeadlineExceeded):
		kind = kindDeadline
	case errors.Is(cause, ErrStreamOverflow):
		kind = kindInternal
	}
	text := "canceled"
	if cause != nil {
		text = cause.Error()
	}
	return &thrift.ApplicationException{Kind: kind, Message: text[:min(len(text), mostReason)]}
}

// exceptionOf decodes the payload of a last frame, which may be empty.
func exceptionOf(payload []byte) (*thrift.ApplicationException, error) {
	if len(payload) == 0 {
		return nil, nil
	}
	var m thrift.Message
	body := thrift.ReadMessage(payload, 0, &m)
	if body < 0 {
		return nil, thrift.Err(body, 0)
	}
	if m.Type != thrift.Exception {
		return nil, fmt.Errorf("a message of type %v; expected an exception", m.Type)
	}
	var r thrift.Reader
	e := new(thrift.ApplicationException)
	_, err := r.Read(payload, body, e)
	return e, err
}

// lastOf returns the error that a last frame stands for: io.EOF, a *StatusError, a *thrift.ApplicationException, or
// another error. It never returns nil.
func lastOf(f *frame.Stream) error {
	e, err := exceptionOf(f.Payload)
	switch {
	case err != nil:
		return fmt.Errorf("reading the end of the stream: %w", err)
	case f.Kind == frame.StreamReset:
		if e == nil {
			e = &thrift.ApplicationException{Kind: kindCanceled, Message: "no reason given"}
		}
		return &resetError{e}
	case e != nil:
		return e
	}
	if status := readStatus(&f.Info); status != nil {
		return status
	}
	return io.EOF
}

// number parses a value in decimal digits; it returns 0 if the value is invalid.
func number(text []byte) int {
	if len(text) == 0 || len(text) > 10 {
		return 0
	}
	n, err := strconv.ParseUint(string(text), 10, 31)
	if err != nil {
		return 0
	}
	return int(n)
}
