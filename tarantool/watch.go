package tarantool

import (
	"context"
	"errors"
	"math"
	"sync"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// All watchers share one connection that is always read. The request for the next event
// acknowledges the last; on a new connection all keys are requested again. Only the last value of a
// key is kept.

// A Watcher receives the values of a key that box.broadcast sets on the server (Tarantool
// documentation, "Watchers"). Only the last value counts: values that arrive while no caller
// waits are skipped, and after a lost connection the present value is delivered.
type Watcher struct {
	// Immutable.
	hub *watchHub
	key string

	changed chan struct{} // capacity 1: there is a value that was not taken

	// Guarded by hub.mu.
	value []byte // MessagePack; nil if the key has no value
	known bool   // a value came
	ended error  // why no more values come
}

// WatchEvent is the value of a watched key.
type WatchEvent struct {
	Key    string
	value  []byte
	limits iproto.Limits // of the client
}

// Decode decodes the value into dst, a pointer: see the package comment. A key without a value
// leaves dst zero.
func (e WatchEvent) Decode(dst any) error {
	if e.value == nil {
		return decodeData(e.limits, []byte{0xc0}, dst)
	}
	return decodeData(e.limits, e.value, dst)
}

// Value returns the value as a general one, or nil for a key without a value.
func (e WatchEvent) Value() (v any, err error) {
	err = e.Decode(&v)
	return v, err
}

// ErrWatcherStopped: Stop was called.
var ErrWatcherStopped = errors.New("the watcher was stopped")

// watchHub holds the watchers of a client and the connection that they share, which is always
// read.
type watchHub struct {
	client *Client // immutable

	mu sync.Mutex
	// Guarded by mu.
	engine *pipe.Engine // nil before the first watch
	keys   map[string]map[*Watcher]struct{}
	ended  error
}

// The bounds of the queue for the watchers of a client: the possible maximum.
const (
	mostWatchCalls = 1 << 22
	mostWatchBytes = math.MaxInt
)

func newWatchHub(c *Client) *watchHub {
	return &watchHub{client: c, keys: make(map[string]map[*Watcher]struct{})}
}

// Watch begins to watch a key. The first value, which may be none, arrives immediately. It
// requires Tarantool 2.10. The watcher must be stopped, or the client closed.
func (c *Client) Watch(ctx context.Context, key string) (*Watcher, error) {
	if err := c.knowServer(ctx, "watch"); err != nil {
		return nil, err
	}
	if err := c.needs(box.FeatureWatchers); err != nil {
		return nil, c.fail.NotSent("watch", err)
	}
	e, err := c.watches.connected()
	if err != nil {
		return nil, err
	}
	if _, err := e.Pin(ctx); err != nil { // waits for a connection
		return nil, c.fail.Named("watch", err)
	}
	w := &Watcher{hub: c.watches, key: key, changed: make(chan struct{}, 1)}
	if err := c.watches.add(w); err != nil {
		return nil, err
	}
	return w, nil
}

// connected returns the engine of watchers, which the first makes.
func (h *watchHub) connected() (*pipe.Engine, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return nil, h.client.fail.With("watch", slipstream.Closed, h.ended)
	}
	if h.engine == nil {
		cfg := h.client.engineConfig()
		cfg.Sockets, cfg.Traits.AlwaysRead = 1, true
		// It begins without being connected: to fail fast would be always.
		cfg.FailFast = false
		// The requests are small, one per key, and none may be skipped.
		cfg.MaxCalls, cfg.MaxBytes = mostWatchCalls, mostWatchBytes
		cfg.OnEvent = h.connection
		h.engine = pipe.New(cfg)
	}
	return h.engine, nil
}

// connection is called when the connection is opened and lost, on the goroutine that keeps
// it.
func (h *watchHub) connection(e slipstream.Event) {
	if e.Kind == slipstream.Connected {
		h.renew()
	}
	h.client.hooks.Event(e)
}

// renew requests every key again, on a new connection.
func (h *watchHub) renew() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.engine == nil || len(h.keys) == 0 {
		return
	}
	pin, err := h.engine.PinNow()
	if err != nil {
		return // it is gone again; the next one asks
	}
	for key := range h.keys {
		h.client.sendAside(pin, box.CodeWatch, key)
	}
}

// add adds a watcher. The first of its key requests the value; others share its value, because a
// server sends nothing twice on a connection.
func (h *watchHub) add(w *Watcher) error {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return h.client.fail.With("watch", slipstream.Closed, h.ended)
	}
	for other := range h.keys[w.key] {
		if other.known {
			w.tell(other.value)
		}
		break // all know the same
	}
	if h.keys[w.key] != nil {
		h.keys[w.key][w] = struct{}{}
		return nil
	}
	h.keys[w.key] = map[*Watcher]struct{}{w: {}}
	pin, err := h.engine.PinNow()
	if err != nil {
		return nil // the next connection asks
	}
	if w.key == shutdownKey { // every connection watches it already
		h.client.sendAside(pin, box.CodeUnwatch, w.key)
	}
	h.client.sendAside(pin, box.CodeWatch, w.key)
	return nil
}

// tell hands a value to a watcher. Under the hub's mu.
func (w *Watcher) tell(value []byte) {
	w.value, w.known = value, true
	w.wake()
}

func (w *Watcher) wake() {
	select {
	case w.changed <- struct{}{}:
	default:
	}
}

// event passes a value to the watchers of its key, and requests the next.
func (h *watchHub) event(from pipe.Pin, key, value []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.engine == nil || from.Engine() != h.engine {
		return
	}
	watchers := h.keys[string(key)]
	if len(watchers) == 0 {
		return // the server sends no more than this one without being asked
	}
	kept := append([]byte(nil), value...)
	if value == nil {
		kept = nil
	}
	for w := range watchers {
		w.tell(kept)
	}
	h.client.sendAside(from, box.CodeWatch, string(key))
}

// Next waits for a value that it has not returned yet.
func (w *Watcher) Next(ctx context.Context) (WatchEvent, error) {
	for {
		w.hub.mu.Lock()
		ended := w.ended
		w.hub.mu.Unlock()
		if ended != nil {
			w.wake() // others may wait as well
			return WatchEvent{}, ended
		}
		select {
		case <-w.changed:
		case <-ctx.Done():
			return WatchEvent{}, ctx.Err()
		}
		w.hub.mu.Lock()
		value, known, ended := w.value, w.known, w.ended
		select {
		case <-w.changed: // of the same value: it came in between
		default:
		}
		w.hub.mu.Unlock()
		if ended == nil && known {
			return WatchEvent{Key: w.key, value: value, limits: w.hub.client.opts.decoding()}, nil
		}
	}
}

// Stop ends the watcher: a Next that waits returns [ErrWatcherStopped].
func (w *Watcher) Stop() {
	h := w.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if w.ended != nil {
		return
	}
	w.end(ErrWatcherStopped)
	delete(h.keys[w.key], w)
	if len(h.keys[w.key]) > 0 {
		return
	}
	delete(h.keys, w.key)
	if h.engine != nil && w.key != shutdownKey { // which the client itself continues to watch
		if pin, err := h.engine.PinNow(); err == nil {
			h.client.sendAside(pin, box.CodeUnwatch, w.key)
		}
	}
}

// end lets no more values come. Under the hub's mu.
func (w *Watcher) end(why error) {
	w.ended = why
	w.wake()
}

// close ends all watchers.
func (h *watchHub) close() {
	h.mu.Lock()
	e := h.engine
	h.ended = ErrClosed
	for _, watchers := range h.keys {
		for w := range watchers {
			w.end(ErrClosed)
		}
	}
	clear(h.keys)
	h.mu.Unlock()
	if e != nil {
		e.Close()
	}
}

// WatchOnce makes a request for the value of a key at this moment; its data is an array of
// that, or empty. It needs Tarantool 3.0.
func WatchOnce(key string) Request { return watchOnceRequest{key} }

type watchOnceRequest struct{ key string }

func (r watchOnceRequest) encode(b []byte, x encoding) ([]byte, error) {
	if err := x.client.needs(box.FeatureWatchOnce); err != nil {
		return b, err
	}
	from := len(b)
	return box.EndRequest(box.AppendWatch(x.begin(b, box.CodeWatchOnce), r.key), from), nil
}

func (r watchOnceRequest) about() requestInfo {
	return requestInfo{code: box.CodeWatchOnce, repeatable: true}
}
