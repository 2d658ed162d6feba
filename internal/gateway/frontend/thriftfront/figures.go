package thriftfront

import (
	"sync/atomic"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/thriftdoc"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/striped"
)

// group is a category of calls in metrics.
type group uint8

const (
	groupGet     group = iota // calls for one document
	groupList                 // calls for several
	groupRefused              // calls of unknown methods

	groups
)

// String returns the name of the group in metrics.
func (g group) String() string { return [...]string{"get", "list", "refused"}[g] }

func (m *method) group() group {
	if m.list {
		return groupList
	}
	return groupGet
}

// exceptions is the size of arrays indexed by exception. The first element is unused.
const exceptions = len(thriftdoc.Exceptions) + 1

// figures holds the counters of a server's answers.
type figures struct {
	*frontend.Answers // immutable

	// Atomics. Updated once per turn, read by any goroutine.
	calls     [groups]striped.Counter
	failed    [exceptions]striped.Counter
	stale     atomic.Int64
	malformed atomic.Int64
}

// EachGroup calls visit with each group of calls and the number of answered calls.
func (s *Server) EachGroup(visit func(group string, n int64)) {
	for i := range groups {
		visit(i.String(), s.figures.calls[i].Sum())
	}
}

// EachException calls visit with each declared exception and the number of answers that were one.
func (s *Server) EachException(visit func(name string, n int64)) {
	for _, e := range thriftdoc.Exceptions {
		visit(e.String(), s.figures.failed[e].Sum())
	}
}

// EachThrottled calls visit with each rate limit rule and the number of calls that it has refused.
func (s *Server) EachThrottled(visit func(rule string, n int64)) {
	v := s.live.Load()
	visit("client", v.clientLimit.Refused())
	visit("caller", v.callerLimit.Refused())
	visit("signature", s.wrong.Refused())
	large := s.config.Large.Stats()
	visit("large", int64(large.Refused+large.Throttled))
	visit("waiting", s.crowded.Load())
}

// EachBudget calls visit with each bound that clients share, except those on connections and memory, and its usage.
func (s *Server) EachBudget(visit func(name string, used, limit int64)) {
	visit("waiting", s.waiting.Load(), int64(s.config.MaxWaiting))
}

// Answers returns the counters of answers. The recorded latency of a hit is that of its whole turn.
func (s *Server) Answers() *frontend.Answers { return s.figures.Answers }

// Figures returns the current metrics.
func (s *Server) Figures() frontend.Figures {
	calls := int64(0)
	s.EachGroup(func(_ string, n int64) { calls += n })
	return frontend.Figures{
		Answers: s.Answers(), Requests: calls,
		Engine: s.EngineStats(), Looped: true, Large: s.LargePending(),
		Budgets: frontend.Budgets(s.EachBudget), Throttled: frontend.Counts(s.EachThrottled),
	}
}

// StaleAnswers returns the number of answers with a document that may have been older than promised, as its resource's
// policy allows.
func (s *Server) StaleAnswers() int64 { return s.figures.stale.Load() }

// Malformed returns the number of connections that were closed because a message was not a call.
func (s *Server) Malformed() int64 { return s.figures.malformed.Load() }

// Waiting returns the number of documents that calls wait for.
func (s *Server) Waiting() int64 { return s.waiting.Load() }

// Held returns the size in bytes of loaded documents whose answers have not been appended yet.
func (s *Server) Held() int64 { return s.held.Load() }

// LargePending returns the size in bytes of large answers that wait for clients to read them, or for earlier answers.
func (s *Server) LargePending() int64 { return s.config.Large.Stats().Used }

// EngineStats returns the stats of the engine.
func (s *Server) EngineStats() loop.Stats { return s.engine.Stats() }

// tally counts the answers of one turn.
type tally struct {
	calls  [groups]int32
	failed [exceptions]int32
	hits   int32
	others int32
	bytes  int64
}

// addTo adds the counts to f and clears them.
func (y *tally) addTo(f *figures) {
	for i, n := range y.calls {
		if n != 0 {
			f.calls[i].Add(int64(n))
		}
	}
	for i, n := range y.failed {
		if n != 0 {
			f.failed[i].Add(int64(n))
		}
	}
	f.AddBytes(y.bytes)
	*y = tally{}
}
