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

// Headers and trailers are texts with names that a handler sends in addition to messages: the header before the first
// one, the trailer after the last one. Keys are written as they are, as Kitex does. What a client sends in this way is
// the metadata in the frame that opens the stream: see WithMeta.

const (
	// mostStreamMeta bounds a header and a trailer. A header and what firstCredit permits fit into StreamLimits.Unread
	// together with a window that is full.
	mostStreamMeta = 32 << 10
	// pairCost is what a key and its value count in addition to their bytes.
	pairCost = 32
	// prefixOwn begins the keys that only this package writes.
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

// joined returns the keys and values of both. Those of more replace others.
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

// handlerMeta is what a handler has set.
type handlerMeta struct {
	begun atomic.Bool // the header was sent, or will not be; written with mu

	mu sync.Mutex
	// Guarded by mu.
	header, trailer map[string]string
}

// errHeaderSent is the error for a header that is too late.
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
// [ClientStream.Header]. It is sent with the first message, or at the end of the stream. A header has at most 32 KiB, of
// which each key counts 32 bytes. SetHeader fails after the header was sent.
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
// handler returns an error or not: see [ClientStream.Trailer]. It has the bound of headers.
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

// sendHeader sends the header, unless it was sent, before the first message or the end. Clients of Kitex wait for one;
// those of this package get only one that has keys.
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

// writeHeader ends the time of the header and, if it is needed, queues it. Nothing delays it: there is one for each
// stream. The caller holds extra.mu, so that no message precedes it.
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

// takeTrailer returns the trailer.
func (h *handlerMeta) takeTrailer() map[string]string {
	h.mu.Lock()
	defer h.mu.Unlock()
	return h.trailer
}

// clientMeta is what the client has received of a handler. It is owned by the goroutine that receives.
type clientMeta struct {
	header, trailer map[string]string
	begun           bool   // the first frame was received
	ahead           []byte // the first message, which Header has received before Recv; nil if there is none
}

// Header returns the header that the handler has set: see [ServerStream.SetHeader]. It waits until the server has sent
// it, a message, or the end of the stream. If there is none, it returns nil. It must be called by the goroutine that
// receives. The map must not be changed.
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
// returned io.EOF or the error of the handler; before that, Trailer returns nil. It must be called by the goroutine
// that receives. The map must not be changed.
func (s *ClientStream) Trailer() map[string]string { return s.meta.trailer }

// control takes a frame that is no message.
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

// withoutTrailer returns the end of a stream whose trailer is an error.
func (s *ClientStream) withoutTrailer(last *slipstream.Error, cause error) *slipstream.Error {
	e := &thrift.ApplicationException{Kind: thrift.ProtocolError, Message: "the trailer of the stream: " + cause.Error()}
	if last == errEndOfStream {
		return s.client.fail.Executed(s.name, e)
	}
	return s.client.fail.With(s.name, last.Outcome, errors.Join(last.Err, e))
}
