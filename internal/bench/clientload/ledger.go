package clientload

import (
	"math/rand/v2"
	"sync/atomic"

	"github.com/slipstream-go/slipstream"
)

// The state of a key counts the writes in flight and those that have begun in one word, so a write
// gets its number and learns at the same instant whether other writes are in flight. If none is,
// every write with a lower number had ended before it began, so a read that begins after its
// acknowledgement must not return the value of one of these. Nothing follows from writes that
// overlap, because a server may execute them in any order.
const (
	oneUnderWay  = 1
	underWay     = unknown - 1
	unknown      = 1 << 22 // a write has failed and may be executed at any time
	oneBegun     = unknown << 1
	sequenceBits = 40 // of 64; the others identify the process that has written a value
	sequenceMask = 1<<sequenceBits - 1
	oneRun       = 1 << sequenceBits // untracked values have none
)

// mostTracked bounds the memory of a Ledger to 64 MiB.
const mostTracked = 1 << 22

// A Ledger knows which writes of each key have been acknowledged, so that stale values are
// detected. All methods are safe for concurrent use.
type Ledger struct {
	// Immutable after NewLedger.
	run    uint64  // the upper bits of all sequence numbers
	states []state // of the keys; nil if there are too many

	sequence atomic.Uint64 // of values whose age does not matter
}

type state struct {
	writes atomic.Uint64
	floor  atomic.Uint64 // sequence number of the oldest value that may be read
}

// NewLedger returns a ledger for the given number of keys. If there are more than 4,194,304, it
// detects no stale values.
func NewLedger(keys int64) *Ledger {
	l := &Ledger{run: (rand.Uint64() | oneRun) &^ sequenceMask}
	if keys <= mostTracked {
		l.states = make([]state, keys)
	}
	return l
}

// Tracks reports whether the ledger detects stale values.
func (l *Ledger) Tracks() bool { return l.states != nil }

// A Write is one write of a key.
type Write struct {
	Key      int64
	Sequence uint64 // must be stored in the value
	alone    bool   // no other write of the key was in flight when it began
}

// Begin begins a write, which Acknowledged or Failed ends.
func (l *Ledger) Begin(key int64) Write {
	if l.states == nil {
		return Write{Key: key, Sequence: l.Untracked()}
	}
	writes := l.states[key].writes.Add(oneBegun + oneUnderWay)
	return Write{Key: key, Sequence: l.run | writes/oneBegun&sequenceMask, alone: writes&(underWay|unknown) == oneUnderWay}
}

// Untracked returns a sequence number for a value that is not tracked.
func (l *Ledger) Untracked() uint64 { return l.sequence.Add(1) & sequenceMask }

// Acknowledged ends a write that the server has executed.
func (l *Ledger) Acknowledged(w Write) {
	if l.states == nil {
		return
	}
	s := &l.states[w.Key]
	if w.alone {
		for {
			floor := s.floor.Load()
			if floor >= w.Sequence || s.floor.CompareAndSwap(floor, w.Sequence) {
				break
			}
		}
	}
	s.writes.Add(^uint64(oneUnderWay - 1)) // minus oneUnderWay
}

// Failed ends a write for which the client returned an error.
func (l *Ledger) Failed(w Write, err error) {
	if l.states == nil {
		return
	}
	s := &l.states[w.Key]
	if slipstream.OutcomeOf(err) == slipstream.MaybeExecuted {
		s.writes.Or(unknown)
	}
	s.writes.Add(^uint64(oneUnderWay - 1))
}

// Floor returns the sequence number of the oldest value that a read which begins now may return. It
// is passed to Judge.
func (l *Ledger) Floor(key int64) uint64 {
	if l.states == nil {
		return 0
	}
	return l.states[key].floor.Load()
}

// Judge returns the verdict on a value that was read from a key. Values of other processes are
// never stale, because it is not known when they were written.
func (l *Ledger) Judge(value []byte, key int64, floor uint64) Verdict {
	v := judge(value, key)
	if v != Right || floor == 0 {
		return v
	}
	sequence, ok := sequenceOf(value)
	switch {
	case !ok:
		return Wrong
	case sequence&^sequenceMask == l.run && sequence < floor:
		return Stale
	}
	return Right
}
