package respfront

import (
	"sync/atomic"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/striped"
)

// figures are the counters of a server's answers.
type figures struct {
	*frontend.Answers // immutable

	// Atomics. Written with the answers of a read, read by any goroutine.
	commands [groups]striped.Counter
	failed   [failures]striped.Counter
	stale    atomic.Int64
	http     atomic.Int64
}

// EachGroup calls visit with every group of commands and how many were answered.
func (s *Server) EachGroup(visit func(group string, n int64)) {
	for i := range groups {
		visit(i.String(), s.figures.commands[i].Sum())
	}
}

// EachFailure calls visit with every kind of error answers and how many there were.
// "wrongpass" counts failed logins.
func (s *Server) EachFailure(visit func(kind string, n int64)) {
	for i := range failures {
		visit(i.String(), s.figures.failed[i].Sum())
	}
}

// Answers returns the counters of answers. A hit counts with the time of all commands of its
// read.
func (s *Server) Answers() *frontend.Answers { return s.figures.Answers }

// Figures returns the current figures.
func (s *Server) Figures() frontend.Figures {
	return frontend.Figures{
		Answers: s.Answers(), Requests: s.commandsAnswered(),
		Engine: s.EngineStats(), Looped: true, Large: s.LargePending(),
		Budgets: frontend.Budgets(s.EachBudget), Throttled: frontend.Counts(s.EachThrottled),
	}
}

// StaleAnswers returns how many answers contained a document that may have been older
// than promised, as the policy of its resource permits. Redis has no way to mark them.
func (s *Server) StaleAnswers() int64 { return s.figures.stale.Load() }

// SpokeHTTP returns how many connections were closed because the client sent HTTP.
func (s *Server) SpokeHTTP() int64 { return s.figures.http.Load() }

// Waiting returns how many documents commands wait for.
func (s *Server) Waiting() int64 { return s.waiting.Load() }

// Held returns how many bytes of documents were loaded and wait for their turn in an
// answer.
func (s *Server) Held() int64 { return s.held.Load() }

// LargePending returns how many bytes of large answers wait for clients, or for their turn to
// be sent.
func (s *Server) LargePending() int64 { return s.config.Large.Stats().Used }

// EngineStats returns the stats of the engine.
func (s *Server) EngineStats() loop.Stats { return s.engine.Stats() }

func (s *Server) commandsAnswered() (n int64) {
	for i := range groups {
		n += s.figures.commands[i].Sum()
	}
	return n
}

// tally counts the answers of one turn, so that a pipeline of a hundred commands is
// counted with a few atomic additions.
type tally struct {
	commands [groups]int32
	failed   [failures]int32
	hits     int32
	others   int32
	bytes    int64
}

// addTo adds the counts to f and clears them.
func (y *tally) addTo(f *figures) {
	for i, n := range y.commands {
		if n != 0 {
			f.commands[i].Add(int64(n))
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
