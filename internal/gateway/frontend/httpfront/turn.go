package httpfront

import (
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
	"github.com/slipstream-go/slipstream/internal/gateway/trace"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// turn is the memory of one request under way. A session borrows one for each call of
// Data, so that an idle connection has none.
type turn struct {
	view      *view // that answers
	head      http1.Head
	request   Request
	response  Response
	requestID [trace.RequestIDLength]byte
	forwarded [8]string
	// now is when the bytes were looked at, or the last answer that was noted by itself was
	// complete.
	now         time.Time
	certificate *access.Certificate // of the connection

	// Plain hits that have been answered and not told to the figures: a counter each
	// and a reading of the clock are as much work as a tenth of a pipelined hit.
	hits    int
	bytes   int
	counted bool // the last request is one of them
	again   int  // answers that asked no tier, and of which the cache has to be told
	of      *served

	// recent is the lane's, nil if another connection of the lane has it.
	recent *recent.Table[*served]
}

var turns = sync.Pool{New: func() any { return new(turn) }}

// borrow returns a turn for a connection of the lane.
func (f *front) borrow(lane int) *turn {
	t := turns.Get().(*turn)
	t.view, t.recent = f.live.Load(), f.recent.Borrow(lane)
	return t
}

// giveBack ends a turn.
func (f *front) giveBack(lane int, t *turn) {
	f.recent.GiveBack(lane, t.recent)
	t.view, t.request, t.response, t.of, t.recent, t.certificate = nil, Request{}, Response{}, nil, nil, nil // or they keep documents alive
	turns.Put(t)
}

// count notes a plain hit for tell.
func (t *turn) count() {
	t.hits++
	t.bytes += t.response.sent()
	t.counted = true
}

// countHit counts an answer that asked no tier for the cache, which does not know of it.
func (t *turn) countHit(s *Service) {
	if of := t.request.question.of; t.of != of {
		t.countAgain(s, of)
	}
	t.again++
}

// countAgain begins to count the hits of another resource.
func (t *turn) countAgain(s *Service, of *served) {
	if t.again > 0 {
		s.cache.CountHits(t.of.ID, t.again)
	}
	t.of, t.again = of, 0
}

// tell tells the figures of the hits that were counted.
func (t *turn) tell(s *Service) {
	t.countAgain(s, nil)
	if t.hits == 0 {
		return
	}
	took := time.Since(t.now)
	if t.counted {
		s.noteHits(t.hits, t.bytes, &t.request, &t.response, took)
	} else {
		s.noteHits(t.hits, t.bytes, nil, nil, took)
	}
	t.hits, t.bytes, t.counted = 0, 0, false
}
