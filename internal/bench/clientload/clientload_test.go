package clientload

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/load"
)

func TestKeysOfSequences(t *testing.T) {
	k := Keys{Prefix: "k", Count: 10, Distribution: Sequential}
	for caller, want := range []string{"k0 k1 k2 k3 k4 k5 k6 k7 k8 k9 k0", "k5 k6 k7 k8 k9 k0 k1 k2 k3 k4 k5"} {
		c := k.Chooser(caller, 2)
		var got []string
		for range 11 {
			got = append(got, string(k.AppendName(nil, c.Key())))
		}
		if strings.Join(got, " ") != want {
			t.Errorf("caller %d: %v, want %s", caller, got, want)
		}
	}
}

// With the Zipf distribution, the first of many keys is used far more often than with a uniform
// one.
func TestKeysOfZipf(t *testing.T) {
	k := Keys{Count: 1000, Distribution: Zipf, Exponent: 1.1}
	c, first := k.Chooser(0, 1), 0
	for range 10_000 {
		switch key := c.Key(); {
		case key == 0:
			first++
		case key < 0 || key >= 1000:
			t.Fatalf("key %d", key)
		}
	}
	if first < 1000 {
		t.Errorf("the first of 1,000 keys was chosen %d out of 10,000 times", first)
	}
}

func TestWrongKeys(t *testing.T) {
	for problem, k := range map[string]Keys{
		"0 keys":              {Distribution: Uniform},
		`distribution "even"`: {Count: 1, Distribution: "even"},
		"an exponent of 1":    {Count: 1, Distribution: Zipf, Exponent: 1},
	} {
		if err := k.Check(); err == nil || !strings.Contains(err.Error(), problem) {
			t.Errorf("%+v: %v, want %q", k, err, problem)
		}
	}
}

func TestValues(t *testing.T) {
	value := AppendValue(nil, 7, 9, 100)
	if len(value) != 100 || judge(value, 7) != Right || judge(value, 8) != Wrong || judge(value[:99], 7) != Right {
		t.Errorf("%s", value)
	}
	value[99]++
	if judge(value, 7) != Wrong || judge(nil, 7) != Foreign || judge(AppendValue(nil, 7, 9, 0), 7) != Right {
		t.Errorf("%s", value)
	}
}

// ledgers is a ledger of one key together with a verdict on its values.
type ledgers struct{ *Ledger }

func (l ledgers) value(w Write) []byte { return AppendValue(nil, w.Key, w.Sequence, MinSize) }

// A value is stale if an acknowledged write replaced it before the read began.
//
// mutant: clientload-stale-is-right
// mutant: clientload-floor-stays
func TestStaleValues(t *testing.T) {
	l := ledgers{NewLedger(2)}
	first := l.Begin(1)
	l.Acknowledged(first)
	second := l.Begin(1)
	before := l.Floor(1) // a read that begins now may return either value
	l.Acknowledged(second)
	after := l.Floor(1)
	for _, tc := range []struct {
		of    Write
		floor uint64
		want  Verdict
	}{{first, before, Right}, {second, before, Right}, {first, after, Stale}, {second, after, Right}} {
		if got := l.Judge(l.value(tc.of), 1, tc.floor); got != tc.want {
			t.Errorf("sequence %x from %x on: %v, want %v", tc.of.Sequence, tc.floor, got, tc.want)
		}
	}
	if l.Floor(0) != 0 {
		t.Errorf("another key starts with the number %x", l.Floor(0))
	}
	if got := l.Judge(AppendValue(nil, 1, first.Sequence^oneRun, MinSize), 1, after); got != Right {
		t.Errorf("the value of another process: %v", got)
	}
	if got := l.Judge(AppendValue(nil, 1, l.Untracked(), MinSize), 1, after); got != Right {
		t.Errorf("a value whose age does not matter: %v", got)
	}
}

// A server may execute writes that overlap in any order, so nothing follows from their
// numbers.
//
// mutant: clientload-overlapping-writes-are-ordered
func TestOverlappingWritesAreInNoOrder(t *testing.T) {
	l := ledgers{NewLedger(1)}
	first := l.Begin(0)
	second := l.Begin(0)
	l.Acknowledged(second)
	l.Acknowledged(first)
	if got := l.Judge(l.value(first), 0, l.Floor(0)); got != Right {
		t.Errorf("the value of the first of two concurrent writes: %v", got)
	}
	third := l.Begin(0) // begins after both
	l.Acknowledged(third)
	for _, w := range []Write{first, second} {
		if got := l.Judge(l.value(w), 0, l.Floor(0)); got != Stale {
			t.Errorf("a value before the third write: %v", got)
		}
	}
}

// A write whose outcome is unknown may be executed after later ones; one that was refused was not
// executed.
//
// mutant: clientload-unknown-write-has-ended
func TestWritesThatFail(t *testing.T) {
	for outcome, want := range map[slipstream.Outcome]Verdict{slipstream.MaybeExecuted: Right, slipstream.NotSent: Stale} {
		l := ledgers{NewLedger(1)}
		first := l.Begin(0)
		l.Failed(first, &slipstream.Error{Outcome: outcome, Err: errors.New("test")})
		second := l.Begin(0)
		l.Acknowledged(second)
		if got := l.Judge(l.value(first), 0, l.Floor(0)); got != want {
			t.Errorf("a write that was %v: %v, want %v", outcome, got, want)
		}
	}
}

// A register that executes one request after another never returns a stale value, however requests
// overlap.
func TestNoFalseAlarms(t *testing.T) {
	l := NewLedger(1)
	var mu sync.Mutex
	register := AppendValue(nil, 0, 0, MinSize) // guarded by mu
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() { // ends after its requests; awaited below
			random := rand.New(rand.NewPCG(1, uint64(i)))
			for range 2000 {
				if random.IntN(2) == 0 {
					w := l.Begin(0)
					value := AppendValue(nil, 0, w.Sequence, MinSize)
					mu.Lock()
					register = value
					mu.Unlock()
					l.Acknowledged(w)
					continue
				}
				floor := l.Floor(0)
				mu.Lock()
				value := register
				mu.Unlock()
				if got := l.Judge(value, 0, floor); got != Right {
					t.Errorf("a value read in the order of execution: %v", got)
					return
				}
			}
		})
	}
	all.Wait()
}

func TestTooManyKeysToTrack(t *testing.T) {
	l := ledgers{NewLedger(mostTracked + 1)}
	first := l.Begin(0)
	l.Acknowledged(first)
	second := l.Begin(0)
	l.Failed(second, errors.New("test"))
	if l.Tracks() || l.Floor(0) != 0 || first.Sequence == second.Sequence || l.Judge(l.value(first), 0, l.Floor(0)) != Right {
		t.Errorf("%x, %x", first.Sequence, second.Sequence)
	}
}

// Only replies between the two readings are counted.
//
// mutant: clientload-warm-up-counts
func TestTalliesOfTheWindow(t *testing.T) {
	var all Tallies
	a, b := all.New(), all.New()
	read := func() {
		t.Helper()
		if _, err := all.Counter().Read(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	a.Writes, b.Hits = 5, 5
	if sum := all.Sum(); sum != (Tally{}) {
		t.Errorf("before the window: %+v", sum)
	}
	read()
	a.Writes++
	a.Wrong++
	b.Hits++
	b.Misses++
	b.Others++
	b.Stale++
	b.Foreign++
	read()
	if want := (Tally{1, 1, 1, 1, 1, 1, 1}); all.Sum() != want {
		t.Errorf("%+v, want %+v", all.Sum(), want)
	}
}

func TestKindsOfErrors(t *testing.T) {
	stalled := errors.New("silent")
	for want, err := range map[string]error{
		"timeout":          Failed(fmt.Errorf("x: %w", stalled), stalled),
		"not sent":         Failed(&slipstream.Error{Outcome: slipstream.NotSent, Err: errors.New("x")}, nil),
		"other":            Failed(errors.New("x"), stalled),
		"error WRONGTYPE":  Refused("WRONGTYPE", errors.New("x")),
		"wrong answer":     WrongAnswer("the value of key k", nil),
		"stale answer":     StaleAnswer("the value of key k"),
		"context canceled": load.WithKind("context canceled", context.Canceled),
	} {
		if got := load.ErrorKind(fmt.Errorf("around: %w", err)); got != want {
			t.Errorf("%v: %s, want %s", err, got, want)
		}
	}
}
