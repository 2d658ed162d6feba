package httpfront

import (
	"context"
	"net/http"
	"runtime/debug"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// maxWaiting bounds the requests that wait for loads. Beyond it a connection may have one, and
// the others are refused.
const maxWaiting = 20_000

// What a waiting request holds in addition to its texts, in bytes. The stack of the first one of
// a connection is included in the 20 KiB that the memory limit allows for each connection, which
// is meant for a crowd of connections that each wait for one answer. Measured: 7.8 KB for both
// together, by TestWaitingRequestsAreWeighed.
const (
	weightOfLater = 1 << 10
	weightOfStack = 8 << 10
)

// later is a request that a goroutine answers.
type later struct {
	// Immutable after front.later.
	front   *front
	view    *view // with which the request began
	how     manner
	session *session
	place   loop.Ticket
	number  uint64 // of the session's requests
	ctx     context.Context

	// Owned by the goroutine that answers until it completes place, then by the
	// connection's turn.
	request  Request
	response Response
	deadline loop.Deadline // of the load
	large    int64         // bytes that it has in session.complete

	deferred loop.Deferred // owned by the connection
}

// later makes a goroutine answer the request in t. It copies what it needs of the
// connection's bytes.
func (f *front) later(c *loop.Conn, t *turn, how manner) {
	if f.waiting.Add(1) > maxWaiting && c.Owed() > 0 {
		f.waiting.Add(-1)
		f.crowded.Add(1)
		t.view.Crowded(&t.request, &t.response)
		t.view.Note(&t.request, &t.response)
		f.write(c.Output(), &t.request, &t.response, how)
		return
	}
	s := c.Session().(*session)
	l := &later{front: f, view: t.view, how: how, request: t.request, response: t.response, session: s, number: s.taken}
	if !l.request.Client.IsValid() {
		l.request.Client = f.client(c.RemoteAddr().Addr(), t)
	}
	texts := l.request.own()
	l.request.recent = nil // it belongs to the lane
	weight := weightOfLater + texts + len(l.request.question.answers)*weightOfAnswer
	if c.Owed() > 0 {
		weight += weightOfStack
	}
	l.place = c.DeferInto(&l.deferred, l)
	l.deferred.Weigh(weight)
	l.ctx = c.Context()
	f.answering.Add(1)
	f.workers.Start(l) // ends when the answer is there, at its time limit or with its connection
}

// Work implements [loop.Job]. It loads the documents. A panic, which would be a bug, becomes an error
// of only this request.
func (l *later) Work() {
	f := l.front
	defer func() {
		if v := recover(); v != nil {
			if leftOut, ok := f.panics.Take(f.cache.Now()); ok {
				f.config.Log.Error("a request panicked", "panic", v, "left_out", leftOut, "stack", string(debug.Stack()))
			}
			l.view.problem(&l.response, http.StatusInternalServerError, "the server failed to answer")
		}
		f.waiting.Add(-1)
		l.place.Complete()
		f.answering.Done()
	}()
	l.deadline.Context, l.deadline.At = l.ctx, time.Now().Add(f.config.RequestTimeout)
	defer l.deadline.End()
	l.view.Answer(&l.deadline, &l.request, &l.response)
	l.response.gather()
	if n := int64(l.response.sent()); n >= largeBody {
		if f.config.Large.Admits(n) {
			l.large = n
			l.hold(n)
		} else {
			l.view.Busy(&l.request, &l.response)
		}
	}
	l.view.Note(&l.request, &l.response)
}

// hold counts bytes of a large answer that waits for its turn to be sent.
func (l *later) hold(n int64) {
	if n != 0 {
		l.session.complete.Add(n)
		l.front.engine.HoldLarge(n)
	}
}

// Write implements [loop.Reply].
func (l *later) Write(c *loop.Conn) {
	l.hold(-l.large) // at the end of the turn its connection counts it
	how := l.how
	// The server may have begun to drain while this was loaded. If no request follows it,
	// the client has to be told here: it may send another request at the moment at which an
	// idle connection is closed.
	if s := l.session; c.Draining() && s.taken == l.number && !s.rest && !how.last {
		how.last = true
		c.End()
	}
	l.front.write(c.Output(), &l.request, &l.response, how)
	c.Spend(1 + l.response.copied()>>9)
}

// Drop implements [loop.Reply].
func (l *later) Drop() { l.hold(-l.large) }

// weightOfAnswer is the size of an answer of a batch that waits to be compressed, in bytes.
const weightOfAnswer = 64

// own copies the parts of the request that are the connection's bytes and returns their size.
// Keys of a batch are parsed again from the target: see [Service.answerBatch].
func (req *Request) own() (n int) {
	for _, s := range []*string{
		&req.Target, &req.IfMatch, &req.IfNoneMatch, &req.AcceptEncoding, &req.Authorization,
		&req.APIKey, &req.Origin, &req.RequestMethod, &req.Referer, &req.UserAgent, &req.ID, &req.question.key.ID,
	} {
		*s = strings.Clone(*s)
		n += len(*s)
	}
	req.question.dropKeys()
	return n
}
