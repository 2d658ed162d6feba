package main

import (
	"errors"
	"math/rand/v2"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/tarantoolserver"
	"github.com/slipstream-go/slipstream/internal/load"
)

// fakeSession is a session of pairs without a server.
type fakeSession struct {
	session
	sent, taken uint64
	wrong       bool
}

func (s *fakeSession) flow(p *pair) { drive(p, s) }

func (s *fakeSession) send(key uint64) uint64 {
	s.sent++
	return key
}

func (s *fakeSession) take(f, key uint64) error {
	s.taken++
	if f != key || key == 0 || key > tarantoolserver.Keys {
		return errors.New("not in order, or no key")
	}
	if s.wrong {
		return tarantoolserver.ErrNoTuple
	}
	return nil
}

// A phase receives the results of all its requests in order. Only the window is reported, and wrong
// results are counted without a latency.
func TestPairs(t *testing.T) {
	for _, wrong := range []bool{false, true} {
		all := newPairs(5*time.Millisecond, 20*time.Millisecond)
		s := &fakeSession{wrong: wrong}
		p := all.caller(s, rand.New(rand.NewPCG(1, 2)), func() {})
		var warm uint64
		for _, phase := range []time.Duration{all.warmUp, all.window} {
			warm = s.sent
			begun := time.Now()
			if err := p.Do(t.Context()); (err != nil) != wrong {
				t.Errorf("error %v", err)
			}
			if took := time.Since(begun); took < phase {
				t.Errorf("a phase of %v took %v", phase, took)
			}
			if s.sent == warm || s.taken != s.sent {
				t.Errorf("%d sent, %d taken", s.sent, s.taken)
			}
			all.mark()
		}
		var r load.Result
		all.amend(&r)
		completed, failed := s.sent-warm, uint64(0)
		if wrong {
			completed, failed = failed, completed
		}
		if r.Completed != completed || r.Errors != failed {
			t.Errorf("%d completed and %d failed, want %d and %d", r.Completed, r.Errors, completed, failed)
		}
		if got := r.Service.Count(); uint64(got) != completed/sampleEvery {
			t.Errorf("%d latencies of %d requests", got, completed)
		}
	}
}
