package pipe

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A sweep visits the calls that were submitted before the previous one, and a socket without unanswered calls
// returns to the slow interval. A call that is submitted at that moment must not wait for the next slow sweep.
func TestCallIsSweptAtAnyTime(t *testing.T) {
	testkit.NoLeaks(t)
	for _, tickets := range []bool{false, true} {
		k := startHolding(t, "tcp", tickets)
		e := k.engine(func(c *Config) { c.choices.SoloAfter = -1 })
		// In each round, the call is submitted at a different moment of the 20 quiet sweeps after
		// the last call.
		for round := range 24 {
			ctx, cancel := context.WithTimeout(t.Context(), time.Hour)
			quick := k.newCall(e, "rquick")
			go func() { k.arrived(1); k.answer() }()
			if err := e.Do(ctx, quick); err != nil {
				t.Fatal(err)
			}
			quick.Release()
			cancel()
			time.Sleep(sweepEvery*time.Duration(round) + sweepEvery/2)
			ctx, cancel = context.WithTimeout(t.Context(), 30*time.Millisecond)
			c := k.newCall(e, "rlate")
			maxLate := lateness()
			began := time.Now()
			err := e.Do(ctx, c)
			took := time.Since(began)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, want DeadlineExceeded", err)
			}
			if late := maxLate(); took > 250*time.Millisecond+2*late {
				t.Errorf("a deadline of 30 ms ended a call after %v; goroutines ran up to %v late", took, late)
			}
			c.Release()
			cancel()
			if slipstream.OutcomeOf(err) == slipstream.NotSent {
				continue // the machine is too slow for this round
			}
			k.arrived(1)
			k.answer()
		}
		e.Close()
	}
}
