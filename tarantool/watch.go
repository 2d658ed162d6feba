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
// acknowledges the last one; on a new connection, all keys are requested again. Only the latest
// value of a key is kept.

// A Watcher receives the values of a key that box.broadcast sets on the server (Tarantool
// documentation, "Watchers"). Only the latest value counts: values that arrive while no caller
// waits are skipped, and after a lost connection the current value is delivered.
type Watcher struct {
	// Immutable.
	hub *watchHub
	key string

	changed chan struct{} // capacity 1: there is a value that was not returned yet

	// Guarded by hub.mu.
	value []byte // MessagePack; nil if the key has no value
	known bool   // a value has arrived
	ended error  // why no more values come
}

// WatchEvent is the value of a watched key.
type WatchEvent struct {
	Key    string
	value  []byte
	limits iproto.Limits // of the client
}

// Decode decodes the value into dst, a pointer: see the package comment. If the key has no value,
// dst is set to zero.
func (e WatchEvent) Decode(dst any) error {
	if e.value == nil {
		return decodeData(e.limits, []byte{0xc0}, dst)
	}
	return decodeData(e.limits, e.value, dst)
}

// Value returns the value decoded into a general type, or nil if the key has no value.
func (e WatchEvent) Value() (v any, err error) {
	err = e.Decode(&v)
	return v, err
}

// ErrWatcherStopped means that Stop was called.
var ErrWatcherStopped = errors.New("the watcher was stopped")

// watchHub contains the watchers of a client and the connection that they share, which is always
// read.
type watchHub struct {
	client *Client // immutable

	mu sync.Mutex
	// Guarded by mu.
	engine *pipe.Engine // nil before the first watch
	keys   map[string]map[*Watcher]struct{}
	ended  error
}

// The bounds of the engine for a client's watchers are the maximum values.
const (
	mostWatchCalls = 1 << 22
	mostWatchBytes = math.MaxInt
)

func newWatchHub(c *Client) *watchHub {
	return &watchHub{client: c, keys: make(map[string]map[*Watcher]struct{})}
}

// Watch starts watching a key. The first value, which may be none, arrives immediately. It requires
// Tarantool 2.10. The watcher must be stopped, or the client closed.
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

// connected returns the engine for watchers, which the first watcher creates.
func (h *watchHub) connected() (*pipe.Engine, error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.ended != nil {
		return nil, h.client.fail.With("watch", slipstream.Closed, h.ended)
	}
	if h.engine == nil {
		cfg := h.client.engineConfig()
		cfg.Sockets, cfg.Traits.AlwaysRead = 1, true
		// The engine is not connected at first, so with FailFast its calls would always fail.
		cfg.FailFast = false
		// The requests are small, one for each key, and none may be omitted.
		cfg.MaxCalls, cfg.MaxBytes = mostWatchCalls, mostWatchBytes
		cfg.OnEvent = h.connection
		h.engine = pipe.New(cfg)
	}
	return h.engine, nil
}

// connection is called when the connection is opened or lost, on the goroutine that maintains it.
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
		return // the connection was lost again; the keys are requested on the next one
	}
	for key := range h.keys {
		h.client.sendAside(pin, box.CodeWatch, key)
	}
}

// add adds a watcher. The first watcher of a key requests the value; others share it, because a
// server sends a value only once on a connection.
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
		break // all watchers of a key have the same value
	}
	if h.keys[w.key] != nil {
		h.keys[w.key][w] = struct{}{}
		return nil
	}
	h.keys[w.key] = map[*Watcher]struct{}{w: {}}
	pin, err := h.engine.PinNow()
	if err != nil {
		return nil // the key is requested on the next connection
	}
	if w.key == shutdownKey { // every connection watches it already
		h.client.sendAside(pin, box.CodeUnwatch, w.key)
	}
	h.client.sendAside(pin, box.CodeWatch, w.key)
	return nil
}

// tell passes a value to a watcher. The caller holds the hub's mu.
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

// event passes a value to the watchers of its key, and requests the next one.
func (h *watchHub) event(from pipe.Pin, key, value []byte) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.engine == nil || from.Engine() != h.engine {
		return
	}
	watchers := h.keys[string(key)]
	if len(watchers) == 0 {
		return // the server sends further values only on request
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
			w.wake() // other callers may be waiting
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
		case <-w.changed: // woken for the same value, which arrived in between
		default:
		}
		w.hub.mu.Unlock()
		if ended == nil && known {
			return WatchEvent{Key: w.key, value: value, limits: w.hub.client.opts.decoding()}, nil
		}
	}
}

// Stop ends the watcher: a blocked Next returns [ErrWatcherStopped].
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
	if h.engine != nil && w.key != shutdownKey { // because the client itself continues to watch that
		if pin, err := h.engine.PinNow(); err == nil {
			h.client.sendAside(pin, box.CodeUnwatch, w.key)
		}
	}
}

// end prevents further values. The caller holds the hub's mu.
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

// WatchOnce makes a request for the current value of a key. Its data is an array with the value, or
// an empty array. It needs Tarantool 3.0.
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
