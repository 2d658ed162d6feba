package httpfront

import (
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/recent"
	"github.com/slipstream-go/slipstream/internal/gateway/trace"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// turn is the memory of one request in progress. A session borrows one for each call of
// Data, so that an idle connection has none.
type turn struct {
	view      *view // that answers
	head      http1.Head
	request   Request
	response  Response
	requestID [trace.RequestIDLength]byte
	forwarded [8]string
	// now is when the bytes were read, or when the last answer that was noted separately was
	// complete.
	now         time.Time
	certificate *access.Certificate // of the connection

	// Plain hits that were answered and not counted yet: incrementing counters and
	// reading the clock for each would cost a tenth of a pipelined hit.
	hits    int
	bytes   int
	counted bool // the last request is one of them
	again   int  // answers without a lookup, which the cache has to count
	of      *served

	// recent is the table of the lane, or nil if another connection of the lane
	// has it.
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
	t.view, t.request, t.response, t.of, t.recent, t.certificate = nil, Request{}, Response{}, nil, nil, nil // otherwise they would keep documents alive
	turns.Put(t)
}

// count records a plain hit for tell.
func (t *turn) count() {
	t.hits++
	t.bytes += t.response.sent()
	t.counted = true
}

// countHit counts a hit for the cache, which was not queried.
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

// tell passes the counted hits to the metrics.
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
