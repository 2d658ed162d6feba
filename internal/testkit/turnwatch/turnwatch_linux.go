// Package turnwatch bounds the CPU time of turns of event loops in tests.
package turnwatch

import (
	"runtime"
	"runtime/debug"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// Longest is the maximum CPU time of one turn of a loop.
const Longest = 2 * time.Millisecond

// A test passes once enough of its attempts are clean. The clock of a thread also counts time that
// does not belong to the turn: time that a hypervisor gives to other machines, and packets of other
// sockets that the kernel processes at the end of a system call. On a busy machine a write that
// wrote nothing took
// 2.2 ms, and one of five attempts was clean.
const (
	attempts = 20
	enough   = 2
)

// memory is how much memory an attempt may use. No garbage collection starts before that, because
// allocations in a turn would have to assist it.
const memory = 2 << 30

// A Watch is notified of each turn of the loops that are created during an
// attempt.
type Watch struct {
	// Hold runs once, at the end of the next turn.
	Hold atomic.Pointer[func()]

	// Atomics, written by loops.
	turns, long, longest atomic.Int64
}

// Within runs attempt until no turn took longer than [Longest] in two attempts. It fails the
// test if that does not happen. Tests that call it do not run in parallel with others.
func Within(t *testing.T, attempt func(t *testing.T, w *Watch)) {
	t.Helper()
	var w *Watch
	defer debug.SetGCPercent(debug.SetGCPercent(-1))
	defer debug.SetMemoryLimit(debug.SetMemoryLimit(memory))
	clean := 0
	for range attempts {
		w = new(Watch)
		runtime.GC()
		stop := loop.MeasureTurns(w.report)
		t.Run("attempt", func(t *testing.T) { attempt(t, w) }) // when it ends, the loops end and the last turn is reported
		stop()
		turns, long := w.turns.Load(), w.long.Load()
		t.Logf("of %d turns, %d took more than %v; the longest took %v", turns, long, Longest, time.Duration(w.longest.Load()))
		if turns > 0 && long == 0 {
			clean++
		}
		if clean == enough {
			return
		}
	}
	t.Errorf("turns take more than %v of CPU time; the longest took %v", Longest, time.Duration(w.longest.Load()))
}

func (w *Watch) report(cpu time.Duration) {
	w.turns.Add(1)
	if cpu > Longest {
		w.long.Add(1)
	}
	for old := w.longest.Load(); int64(cpu) > old && !w.longest.CompareAndSwap(old, int64(cpu)); old = w.longest.Load() {
	}
	if hold := w.Hold.Swap(nil); hold != nil {
		(*hold)()
	}
}
