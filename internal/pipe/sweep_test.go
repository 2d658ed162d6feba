package pipe

import (
	"context"
	"errors"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A sweep visits the calls that were there at the one before, and a socket whose
// calls are all answered in between goes back to the slow pace. A call that comes
// at that very moment must not be forgotten until the next slow round.
func TestCallIsSweptWheneverItComes(t *testing.T) {
	testkit.NoLeaks(t)
	for _, tickets := range []bool{false, true} {
		k := startKeeping(t, "tcp", tickets)
		e := k.engine(func(c *Config) { c.choices.SoloAfter = -1 })
		// Each round meets another moment of the 20 quiet sweeps after the last call.
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
			most := lateness()
			began := time.Now()
			err := e.Do(ctx, c)
			took := time.Since(began)
			if !errors.Is(err, context.DeadlineExceeded) {
				t.Errorf("%v, expected that the deadline passed", err)
			}
			if late := most(); took > 250*time.Millisecond+2*late {
				t.Errorf("a deadline of 30 ms ended a call after %v; goroutines run up to %v late", took, late)
			}
			c.Release()
			cancel()
			if slipstream.OutcomeOf(err) == slipstream.NotSent {
				continue // this machine is slower than 30 ms
			}
			k.arrived(1)
			k.answer()
		}
		e.Close()
	}
}
