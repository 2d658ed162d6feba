package tarantool

import (
	"context"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// pushes passes on the values that a call pushes before its result, until the caller gives up.
type pushes struct {
	// Immutable.
	tell   func(d *iproto.Decoder)
	limits iproto.Limits

	mu    sync.Mutex
	ended bool // guarded by mu
}

// interim is called by the engine.
func (p *pushes) interim(frame []byte) {
	m, body, err := replyOf(frame)
	if err != nil {
		return
	}
	r, err := box.ParseBody(m.Code, body)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	defer func() { _ = recover() }() // user code, whose panics must not spread
	d := iproto.NewDecoder(r.Data)
	d.Limit(p.limits)
	p.tell(&d)
}

// end returns when tell is not running and will not be called again.
func (p *pushes) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
}

// shutdownKey is the key whose value becomes true when a server is about to shut down (Tarantool
// documentation, "Graceful shutdown").
const shutdownKey = "box.shutdown"

// pushed receives the events of every connection, on the goroutine that reads it.
func (c *Client) pushed(from pipe.Pin, frame []byte) {
	m, body, err := replyOf(frame)
	if err != nil || m.Kind != box.Event {
		return
	}
	r, err := box.ParseBody(m.Code, body)
	if err != nil {
		return
	}
	if string(r.EventKey) == shutdownKey {
		d := iproto.NewDecoder(r.EventData)
		if d.Kind() == iproto.KindBool && d.Bool() {
			from.Retire()
		} else {
			c.watchShutdown(from)
		}
	}
	c.watches.event(from, r.EventKey, r.EventData)
}

// watchShutdown requests the next value of shutdownKey. If Options.MaxCalls or MaxBytes leaves no
// room for that, it retries later, because otherwise a server that shuts down would cut off
// requests in flight.
func (c *Client) watchShutdown(on pipe.Pin) {
	if !c.sendAside(on, box.CodeWatch, shutdownKey) && on.Alive() {
		time.AfterFunc(asideAgain, func() { c.watchShutdown(on) })
	}
}

const asideAgain = 10 * time.Millisecond

// appendAside appends a request that has no reply. A server that refuses it sends a reply anyway,
// which the engine drops.
func appendAside(b []byte, code box.Code, key string) []byte {
	from := len(b)
	return box.EndRequest(box.AppendWatch(box.BeginRequest(b, code), key), from)
}

// sendAside sends a request that has no reply on the given connection, if that is still up and has
// room. It never waits.
func (c *Client) sendAside(to pipe.Pin, code box.Code, key string) (sent bool) {
	e := to.Engine()
	if e == nil {
		return false
	}
	call := e.Acquire()
	call.Frame = appendAside(call.Frame[:0], code, key)
	call.Pin, call.OneWay = to, true
	if e.StartFunc(context.Background(), call, aside{}) != nil {
		call.Release()
		return false
	}
	return true
}

// aside releases a call that has no reply.
type aside struct{}

// Complete implements pipe.Completer.
func (aside) Complete(call *pipe.Call) { call.Release() }
