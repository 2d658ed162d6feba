package rpc

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strings"
	"sync"
	"sync/atomic"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
)

// Headers and trailers are keys and values that a handler sends in addition to messages: the header before the first
// message, the trailer after the last one. Keys are written unchanged, as Kitex does. A client sends metadata in the
// frame that opens the stream: see WithMeta.

const (
	// mostStreamMeta bounds a header and a trailer. A header and the bytes that firstCredit permits fit in StreamLimits.Unread
	// together with a full window.
	mostStreamMeta = 32 << 10
	// pairCost is what a key and its value are charged in addition to their bytes.
	pairCost = 32
	// prefixOwn is the prefix of keys that only this package writes.
	prefixOwn = "slipstream-"
)

// errMuchMeta is the error for a header or a trailer that exceeds mostStreamMeta.
var errMuchMeta = fmt.Errorf("it has more than %d bytes, of which each key counts %d", mostStreamMeta, pairCost)

// isOwnKey reports whether a key of a header or a trailer belongs to the protocol.
func isOwnKey(key string) bool {
	switch key {
	case frame.KeyStatus, frame.KeyStatusMessage, frame.KeyStatusExtra:
		return true
	}
	return strings.HasPrefix(key, prefixOwn)
}

// readPairs returns the keys and values of a header or a trailer, or nil if there are none.
func readPairs(info *frame.Info) (all map[string]string, err error) {
	if !info.HasKeys() {
		return nil, nil
	}
	cost := 0
	for name, value := range info.Strings() {
		if isOwnKey(string(name)) {
			continue
		}
		if cost += len(name) + len(value) + pairCost; cost > mostStreamMeta {
			return nil, errMuchMeta
		}
		if all == nil {
			all = make(map[string]string)
		}
		all[string(name)] = string(value)
	}
	return all, nil
}

// writePairs writes keys and values in the order of the keys.
func writePairs(w *frame.Writer, all map[string]string) {
	for _, key := range slices.Sorted(maps.Keys(all)) {
		w.String(key, all[key])
	}
}

// joined returns the keys and values of both. Those of more take precedence.
func joined(all, more map[string]string) (map[string]string, error) {
	sum := make(map[string]string, len(all)+len(more))
	maps.Copy(sum, all)
	maps.Copy(sum, more)
	cost := 0
	for key, value := range sum {
		if isOwnKey(key) {
			return nil, &InvalidCallError{fmt.Errorf("the key %q is reserved; use a name that begins neither with biz- nor with %s", key, prefixOwn)}
		}
		cost += len(key) + len(value) + pairCost
	}
	if cost > mostStreamMeta {
		return nil, &InvalidCallError{fmt.Errorf("the header or trailer: %w", errMuchMeta)}
	}
	return sum, nil
}

// handlerMeta is the header and the trailer that a handler has set.
type handlerMeta struct {
	begun atomic.Bool // the header was sent, or will not be; written with mu

	mu sync.Mutex
	// Guarded by mu.
	header, trailer map[string]string
}

// errHeaderSent is the error if a header is set after it was sent.
var errHeaderSent = errors.New("the header of the stream was sent before: set it before the first message")

// setHeader adds keys and values to the header. It is called with mu held.
func (h *handlerMeta) setHeader(more map[string]string) error {
	if h.begun.Load() {
		return &InvalidCallError{errHeaderSent}
	}
	all, err := joined(h.header, more)
	if err == nil {
		h.header = all
	}
	return err
}

// SetHeader adds keys and values to the header, which the client receives before the first message: see
// [ClientStream.Header]. It is sent with the first message, or at the end of the stream. A header has at most 32 KiB,
// and every key counts 32 bytes more than its length. SetHeader fails after the header has been sent.
func (s *ServerStream) SetHeader(values map[string]string) error {
	h := &s.stream.extra
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.setHeader(values)
}

// SendHeader adds keys and values to the header and sends it.
func (s *ServerStream) SendHeader(values map[string]string) error {
	h := &s.stream.extra
	h.mu.Lock()
	defer h.mu.Unlock()
	if err := h.setHeader(values); err != nil {
		return err
	}
	s.stream.writeHeader(true)
	return nil
}

// SetTrailer adds keys and values to the trailer, which the client receives with the end of the stream, whether the
// handler returns an error or not: see [ClientStream.Trailer]. The limits of headers apply.
func (s *ServerStream) SetTrailer(values map[string]string) error {
	h := &s.stream.extra
	h.mu.Lock()
	defer h.mu.Unlock()
	all, err := joined(h.trailer, values)
	if err == nil {
		h.trailer = all
	}
	return err
}

// sendHeader sends the header before the first message or the end, unless it has been sent. Kitex clients wait for one;
// clients of this package receive one only if it has keys.
func (st *serverStream) sendHeader() {
	h := &st.extra
	if h.begun.Load() {
		return
	}
	h.mu.Lock()
	defer h.mu.Unlock()
	if !h.begun.Load() {
		st.writeHeader(len(h.header) > 0 || st.window == 0)
	}
}

// writeHeader queues the header if it is needed. After that, none can be set. It needs no credit, because there is one
// per stream. The caller holds extra.mu, so that no message precedes it.
func (st *serverStream) writeHeader(needed bool) {
	h := &st.extra
	if needed {
		w := frame.BeginStream(nil, st.id, frame.StreamHeader)
		writePairs(&w, h.header)
		if b, err := endStreamFrame(w, 0); err == nil { // it fits
			st.conn.sendOwn(st, b)
		}
	}
	h.header = nil
	h.begun.Store(true)
}

// takeTrailer returns the trailer that the handler has set.
func (h *handlerMeta) takeTrailer() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trailer
}

// clientMeta is the metadata received from a handler. It is owned by the receiving goroutine.
type clientMeta struct {
	header, trailer map[string]string
	begun           bool   // the first frame was received
	ahead           []byte // the first message, which Header received instead of Recv; nil if there is none
}

// Header returns the header that the handler has set: see [ServerStream.SetHeader]. It waits until the server has sent
// it, a message, or the end of the stream. If there is none, it returns nil. It must be called by the receiving goroutine.
// The map must not be modified.
func (s *ClientStream) Header(ctx context.Context) (map[string]string, error) {
	for !s.meta.begun && s.last.Load() == nil {
		b, f, err := s.next(ctx)
		switch {
		case err != nil:
			return nil, err
		case f.Kind == frame.StreamData:
			s.meta.ahead, s.meta.begun = b, true
		default:
			if err := s.control(&f); err != nil {
				return nil, err
			}
		}
	}
	if !s.meta.begun {
		return nil, s.end()
	}
	return s.meta.header, nil
}

// Trailer returns the trailer that the handler has set: see [ServerStream.SetTrailer]. It is known when Recv has
// returned io.EOF or the handler's error; before that, Trailer returns nil. It must be called by the receiving
// goroutine. The map must not be modified.
func (s *ClientStream) Trailer() map[string]string { return s.meta.trailer }

// control handles a frame that is not a message.
func (s *ClientStream) control(f *frame.Stream) error {
	var err error
	switch f.Kind {
	case frame.StreamHeader:
		if s.meta.begun { // only the first frame can be the header
			return nil
		}
		if s.meta.header, err = readPairs(&f.Info); err != nil {
			failure := s.client.fail.Executed(s.name, &thrift.ApplicationException{Kind: thrift.ProtocolError, Message: "the header of the stream: " + err.Error()})
			s.last.Store(failure)
			s.stream.Close() // the handler need not continue
			return failure
		}
	case frame.StreamTrailer, frame.StreamReset:
		last := s.result(f)
		if s.meta.trailer, err = readPairs(&f.Info); err != nil {
			last = s.withoutTrailer(last, err)
		}
		s.last.Store(last)
	}
	s.meta.begun = true
	return nil
}

// withoutTrailer returns the error of a stream whose trailer is invalid.
func (s *ClientStream) withoutTrailer(last *slipstream.Error, cause error) *slipstream.Error {
	e := &thrift.ApplicationException{Kind: thrift.ProtocolError, Message: "the trailer of the stream: " + cause.Error()}
	if last == errEndOfStream {
		return s.client.fail.Executed(s.name, e)
	}
	return s.client.fail.With(s.name, last.Outcome, errors.Join(last.Err, e))
}
