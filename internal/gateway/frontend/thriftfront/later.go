package thriftfront

import (
	"bytes"
	"context"
	"strings"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// later is an answer that a worker completes.
type later struct {
	call call // with its own memory

	// Owned by the worker until it completes the ticket, then by the turn.
	failure *failure
	source  frontend.Source
	loaded  int      // number of documents loaded for the call
	parts   [][]byte // the answer of a batch
	size    int      // of parts

	// Immutable after postpone.
	ctx    context.Context
	ticket loop.Ticket

	deferred loop.Deferred // owned by the connection
	held     atomic.Int64  // bytes of documents that are included in Server.held
}

// weightOfLater is the memory that a waiting call holds in addition to its message: the later itself and its
// goroutine's stack. weightOfKey is the memory for each key.
const (
	weightOfLater = 9 << 10
	weightOfKey   = 128
)

// fewKeys is the number of documents that a connection may wait for beyond Config.MaxWaiting.
const fewKeys = 16

// postpone reserves a slot for the answer, and lets a worker do the rest. Beyond the bound, a connection with no
// pending answer may still make a small call, so that clients that exhaust the bound do not shut out all others.
func (t *turn) postpone() {
	s, n := t.server, len(t.call.keys)
	if s.waiting.Add(int64(n)) > int64(s.config.MaxWaiting) && (n > fewKeys || t.conn.Owed() > 0) {
		s.waiting.Add(-int64(n))
		s.crowded.Add(1)
		t.fail(failLoads)
		return
	}
	w := &later{call: t.call.copied(), ctx: t.conn.Context()}
	if t.call.anyOrder {
		w.ticket = t.conn.DeferAnyOrderInto(&w.deferred, w)
	} else {
		w.ticket = t.conn.DeferInto(&w.deferred, w)
	}
	w.deferred.Weigh(weightOfLater + len(w.call.args) + len(w.call.authorization) + n*weightOfKey)
	s.work.Add(1)
	// Ends with RequestTimeout or with the connection, whose context it has. Shutdown waits for it.
	s.workers.Start(w)
}

// copied returns a copy of the call that owns its memory. The keys are read again from the copied arguments.
func (k *call) copied() call {
	c := *k
	c.args, c.authorization = bytes.Clone(k.args), bytes.Clone(k.authorization)
	c.name = []byte(k.method.name)
	c.keys, c.slots, c.ids = make([][]byte, 0, len(k.keys)), nil, nil
	c.scratch = nil
	return c
}

// Work implements [loop.Job].
func (w *later) Work() {
	k := &w.call
	s := k.session.server
	defer s.work.Done()
	defer w.ticket.Complete()
	timeout := s.config.RequestTimeout
	if k.timeout > 0 {
		timeout = min(timeout, k.timeout)
	}
	ctx, cancel := context.WithTimeout(cache.WithClient(w.ctx, k.session.client), timeout)
	defer cancel()
	w.failure = w.find(ctx)
}

// find repeats the steps of a turn, and may block. The keys have already been charged.
func (w *later) find(ctx context.Context) *failure {
	k := &w.call
	if f := k.read(); f != nil {
		return f
	}
	if !k.passed { // otherwise the turn authorized the call
		if f := k.authorize(ctx); f != nil {
			return f
		}
	}
	if f := k.parse(); f != nil {
		return f
	}
	if f := w.load(ctx); f != nil {
		return f
	}
	if f := k.encode(false); f != nil {
		return f
	}
	if f := w.hold(k.size()); f != nil {
		return f
	}
	if k.converts() {
		if f := k.convert(false); f != nil {
			return f
		}
	}
	if k.method.list {
		w.parts, w.size = k.render()
	}
	return nil
}

// load gets the documents from the cache, which may load them.
func (w *later) load(ctx context.Context) *failure {
	k := &w.call
	c := k.session.server.cache
	keys, answers := make([]cache.Key, len(k.slots)), make([]cache.Answer, len(k.slots))
	for i := range k.slots {
		keys[i] = k.slots[i].key
		keys[i].ID = strings.Clone(keys[i].ID) // the cache retains the ID, which would retain the message
	}
	var err error
	if len(keys) == 1 {
		answers[0], err = c.Get(ctx, keys[0], k.start)
	} else {
		err = c.GetMany(ctx, keys, k.start, answers)
	}
	if err != nil {
		f, told := loadFailure(err)
		if told {
			k.session.server.warnLoad(k, err)
		}
		return f
	}
	w.source = frontend.SourceHit
	for i, a := range answers {
		w.source = max(w.source, frontend.SourceOf(a))
		if a.Source == cache.FromLoad {
			w.loaded++
		}
		k.slots[i].doc = a.Doc
	}
	return nil
}

// hold counts the documents of the answer until it is appended.
func (w *later) hold(n int) *failure {
	if !w.call.session.server.config.Large.Admits(int64(n)) {
		return failPending
	}
	w.count(int64(n))
	return nil
}

func (w *later) count(n int64) {
	x := w.call.session
	w.held.Add(n)
	x.held.Add(n)
	x.server.held.Add(n)
	x.server.engine.HoldLarge(n)
}

// Drop implements [loop.Reply].
func (w *later) Drop() { w.release() }

// release returns the answer's share of the server's bounds.
func (w *later) release() {
	w.call.session.server.waiting.Add(-int64(cap(w.call.keys)))
	if n := w.held.Load(); n > 0 {
		w.count(-n)
	}
}

// Write implements [loop.Reply].
func (w *later) Write(c *loop.Conn) {
	defer w.release()
	k := &w.call
	s := k.session.server
	k.charge(w.loaded)
	k.last = c.Draining() && k.format.HasHeader()
	size, failed := 0, w.failure
	if failed != nil {
		k.appendFailure(c.Output(), failed)
		w.source = frontend.SourceOther
	} else {
		c.Prove()
		size = k.size()
		if w.parts != nil {
			k.appendParts(c.Output(), w.parts, w.size)
		} else {
			failed = k.append(c.Output())
		}
		s.figures.AddBytes(int64(size))
		c.Spend(1 + len(w.parts) + min(size, linked)>>9)
	}
	if failed != nil {
		s.figures.failed[failed.exception].Add(1)
	}
	if w.source == frontend.SourceStale {
		s.figures.stale.Add(1)
	}
	took := time.Since(k.began)
	s.figures.Record(s.cache.Now(), took, w.source, k.method.of.Name, k.firstKey)
	if k.view.slowerThan > 0 && took > k.view.slowerThan {
		s.warnSlow(k, took, w.source)
	}
	k.record(failed, size, took, w.source)
}
