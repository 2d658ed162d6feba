package tarantool

import (
	"context"
	"sync"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// pushes hands on what a call pushes before its result, until its caller has gone.
type pushes struct {
	tell func(d *Decoder) // immutable

	mu    sync.Mutex
	ended bool // guarded by mu
}

// interim is called by the engine.
func (p *pushes) interim(frame []byte) {
	m, body, err := replyOf(frame)
	if err != nil {
		return
	}
	r, err := iproto.ParseBody(m.Code, body)
	if err != nil {
		return
	}
	p.mu.Lock()
	defer p.mu.Unlock()
	if p.ended {
		return
	}
	defer func() { _ = recover() }() // the user's code: what it does wrong ends with it
	d := iproto.NewDecoder(r.Data)
	p.tell(&d)
}

// end returns when tell is not running, and is called no more.
func (p *pushes) end() {
	p.mu.Lock()
	p.ended = true
	p.mu.Unlock()
}

// shutdownKey is the key whose value is true when a server is about to end (Tarantool
// documentation, "Graceful shutdown").
const shutdownKey = "box.shutdown"

// pushed is told of events of every connection, on the goroutine that reads it.
func (c *Client) pushed(from pipe.Pin, frame []byte) {
	m, body, err := replyOf(frame)
	if err != nil || m.Kind != iproto.Event {
		return
	}
	r, err := iproto.ParseBody(m.Code, body)
	if err != nil {
		return
	}
	if string(r.EventKey) == shutdownKey {
		d := iproto.NewDecoder(r.EventData)
		if d.Kind() == iproto.KindBool && d.Bool() {
			from.Retire()
		} else {
			c.sendAside(from, iproto.CodeWatch, shutdownKey)
		}
	}
	c.watches.event(from, r.EventKey, r.EventData)
}

// sendAside sends a request that has no reply, on a connection, if that is still there. It
// never waits.
func (c *Client) sendAside(to pipe.Pin, code iproto.Code, key string) {
	e := to.Engine()
	if e == nil {
		return
	}
	call := e.Acquire()
	call.Frame = iproto.EndRequest(iproto.AppendWatch(iproto.BeginRequest(call.Frame[:0], code), key), 0)
	call.Pin, call.OneWay = to, true
	if e.StartFunc(context.Background(), call, aside{}) != nil {
		call.Release()
	}
}

// aside releases a call that has no reply.
type aside struct{}

// Complete implements pipe.Completer.
func (aside) Complete(call *pipe.Call) { call.Release() }
