package pipe

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// lentStream returns a stream whose receiver has the reader's role. The server echoes frames that begin with d, and
// leaves others to on.
func lentStream(t *testing.T, on func(r toyRequest), change func(*Config)) (*streamToy, *Engine, *Stream) {
	t.Helper()
	k := startStreamToy(t, &streamToy{on: func(r toyRequest) {
		switch r.body[0] {
		case 'o':
		case 'd':
			echoStream(r)
		default:
			on(r)
		}
	}}, "unix")
	e := k.engine(func(c *Config) {
		soloSoon(c)
		if change != nil {
			change(c)
		}
	})
	st := mustOpen(t, e)
	lend(t, st)
	return k, e, st
}

// lend exchanges frames until the receiver has the role.
func lend(t *testing.T, st *Stream) {
	t.Helper()
	testkit.Eventually(t, 5*time.Second, func() error {
		if err := sendToy(t.Context(), st, "dping"); err != nil {
			return err
		}
		expectToy(t, st, "dping")
		return roleIs(st, roleLent)
	})
}

func roleIs(st *Stream, want role) error {
	s := st.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.role != want || (want == roleLent) != (s.streams.loan.to == st) {
		return fmt.Errorf("the role is %d, lent to %p; want %d", s.role, s.streams.loan.to, want)
	}
	return nil
}

// received receives in the background. It returns when the receiver reads.
func received(ctx context.Context, t *testing.T, st *Stream) <-chan error {
	t.Helper()
	done := make(chan error, 1)
	go func() { // ends with the stream
		body, err := recvToy(ctx, st)
		if err == nil && body != "dlate" {
			err = fmt.Errorf("received %q", body)
		}
		done <- err
	}()
	testkit.Eventually(t, 5*time.Second, func() error {
		st.socket.mu.Lock()
		defer st.socket.mu.Unlock()
		if !st.socket.streams.loan.reading {
			return errors.New("the receiver does not read")
		}
		return nil
	})
	return done
}

func await(t *testing.T, done <-chan error) error {
	t.Helper()
	select {
	case err := <-done:
		return err
	case <-time.After(5 * time.Second):
		t.Fatal("Recv does not return")
		return nil
	}
}

// While the receiver reads, it can be interrupted, and what arrives for others is delivered.
func TestReceiverThatReads(t *testing.T) {
	t.Run("its context ends", func(t *testing.T) {
		_, e, st := lentStream(t, ignoreStream, nil)
		for range 3 { // the stream continues, and the next context is watched as well
			ctx, cancel := context.WithCancel(t.Context())
			done := received(ctx, t, st)
			cancel()
			if err := await(t, done); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
				t.Errorf("Recv: %v", err)
			}
			lend(t, st)
		}
		if n := e.Snapshot().Reconnects; n != 0 {
			t.Errorf("%d connections were lost", n)
		}
	})
	t.Run("the stream is closed", func(t *testing.T) {
		// The server does not answer the reset either, and the engine is patient.
		k, e, st := lentStream(t, ignoreStream, func(c *Config) { c.StallTimeout = -1 })
		done := received(t.Context(), t, st)
		st.Close()
		if err := await(t, done); !errors.Is(err, ErrStreamClosed) {
			t.Errorf("Recv: %v", err)
		}
		k.of(st)[0].reply("ereset")
		checkStreamsBalanced(t, e)
		lend(t, mustOpen(t, e)) // on the same connection
		if n := e.Snapshot().Reconnects; n != 0 {
			t.Errorf("%d connections were lost", n)
		}
	})
	t.Run("the engine is closed", func(t *testing.T) {
		_, e, st := lentStream(t, ignoreStream, nil)
		done := received(t.Context(), t, st)
		if err := e.Close(); err != nil {
			t.Error(err)
		}
		if err := await(t, done); err == nil {
			t.Error("Recv received a frame")
		}
	})
	t.Run("the connection ends", func(t *testing.T) {
		k, _, st := lentStream(t, ignoreStream, nil)
		done := received(t.Context(), t, st)
		k.closeConns()
		if err := await(t, done); slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
			t.Errorf("Recv: %v", err)
		}
	})
	t.Run("others get what is theirs", func(t *testing.T) {
		k, e, st := lentStream(t, ignoreStream, nil)
		done := received(t.Context(), t, st)
		if err := k.echo(t.Context(), e, "rcall"); err != nil {
			t.Error(err)
		}
		other := mustOpen(t, e)
		if err := sendToy(t.Context(), other, "dother"); err != nil {
			t.Fatal(err)
		}
		expectToy(t, other, "dother")
		k.of(st)[0].reply("dlate")
		if err := await(t, done); err != nil {
			t.Error(err)
		}
		if err := roleIs(st, roleKeeper); err != nil {
			t.Errorf("with two streams: %v", err)
		}
	})
}

// While the receiver has the role and does not read, whatever needs a reader returns the role to the keeper.
func TestLoanOfTheRoleEnds(t *testing.T) {
	// If only the sweeper ended the loan, each of the rounds would take half a second.
	const rounds, limit = 30, 10 * time.Second
	t.Run("for a call", func(t *testing.T) {
		k, e, st := lentStream(t, ignoreStream, nil)
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		for range rounds {
			if err := k.echo(ctx, e, "rcall"); err != nil {
				t.Fatal(err)
			}
			lend(t, st)
		}
	})
	t.Run("for another stream", func(t *testing.T) {
		_, e, st := lentStream(t, echoStream, nil)
		other := mustOpen(t, e)
		if err := roleIs(st, roleKeeper); err != nil {
			t.Error(err)
		}
		for range 10 {
			if err := sendToy(t.Context(), other, "dother"); err != nil {
				t.Fatal(err)
			}
			expectToy(t, other, "dother")
			if err := roleIs(st, roleKeeper); err != nil {
				t.Errorf("with two streams: %v", err)
			}
		}
		other.Close()
		lend(t, st)
	})
	t.Run("for a listener", func(t *testing.T) {
		_, _, st := lentStream(t, ignoreStream, nil)
		(Pin{st.socket}).Listen(true)
		if err := roleIs(st, roleKeeper); err != nil {
			t.Error(err)
		}
	})
	t.Run("for credit", func(t *testing.T) {
		k, _, st := lentStream(t, ignoreStream, func(c *Config) { withToyCredit(c, 1<<10, 0) })
		setCredit := func(n int) {
			st.socket.mu.Lock()
			defer st.socket.mu.Unlock()
			st.sending.credit = n
		}
		ctx, cancel := context.WithTimeout(t.Context(), limit)
		defer cancel()
		for range rounds {
			setCredit(0)
			k.of(st)[0].reply("c1000") // nobody reads
			if err := sendToy(ctx, st, "nothing"); err != nil {
				t.Fatal(err)
			}
			lend(t, st)
		}
	})
	t.Run("for credit, when the receiver has a frame", func(t *testing.T) {
		k, _, st := lentStream(t, ignoreStream, func(c *Config) { withToyCredit(c, 1<<10, 0) })
		received := received(t.Context(), t, st)
		sent := make(chan error, 1)
		go func() { sent <- sendToy(t.Context(), st, "n"+strings.Repeat("x", 1024)) }() // ends with the credit
		testkit.Eventually(t, 5*time.Second, func() error {
			st.socket.mu.Lock()
			defer st.socket.mu.Unlock()
			if st.sending.want == 0 {
				return errors.New("Send does not wait")
			}
			return nil
		})
		k.of(st)[0].reply("dlate")
		if err := await(t, received); err != nil {
			t.Error(err)
		}
		if err := roleIs(st, roleKeeper); err != nil {
			t.Error(err)
		}
		k.of(st)[0].reply("c2000")
		if err := await(t, sent); err != nil {
			t.Error(err)
		}
	})
	t.Run("with the stream", func(t *testing.T) {
		k, e, st := lentStream(t, echoStream, nil)
		st.Close()
		checkStreamsBalanced(t, e)
		if err := k.echo(t.Context(), e, "rcall"); err != nil {
			t.Error(err)
		}
	})
	t.Run("if it is not used", func(t *testing.T) {
		k, _, st := lentStream(t, ignoreStream, nil)
		k.of(st)[0].reply("eend") // which the program notices although it does not receive
		testkit.Eventually(t, 10*time.Second, func() error {
			if err := sendToy(t.Context(), st, "nothing"); !errors.Is(err, ErrStreamEnded) {
				return fmt.Errorf("Send: %w", err)
			}
			return nil
		})
		expectToy(t, st, "eend")
	})
}

// The receiver may already wait for the next frame when the keeper lends the role after the previous one.
func TestReceiverIsToldOfTheLoan(t *testing.T) {
	_, _, st := lentStream(t, ignoreStream, nil)
	s := st.socket
	s.mu.Lock()
	defer s.mu.Unlock()
	s.streams.loan.to, s.streams.loan.waits, s.streams.waited = nil, soloNeeded, st
	for len(st.arrived) > 0 {
		<-st.arrived
	}
	if !s.lendToStream() || len(st.arrived) != 1 {
		t.Error("the receiver would wait for the keeper, and the keeper for the receiver")
	}
}

// Streams come, go and receive with contexts that end, and calls are made: the role passes from one goroutine to
// another, and no frame is missed.
func TestRoleGoesToReceiversAndBack(t *testing.T) {
	k := startStreamToy(t, &streamToy{on: func(r toyRequest) {
		if r.body[0] != 'o' {
			echoStream(r)
		}
	}}, "unix")
	e := k.engine(soloSoon)
	seed := testkit.Seed(t)
	loans := uint64(0)
	for round := range 60 {
		r := testkit.Fork(seed, uint64(round))
		st := mustOpen(t, e)
		var others sync.WaitGroup
		frames := 50 + r.IntN(50)
		for i := range frames {
			body := fmt.Sprintf("d%d/%d", round, i)
			if err := sendToy(t.Context(), st, body); err != nil {
				t.Fatal(err)
			}
			switch r.IntN(20) {
			case 0:
				others.Go(func() {
					if err := k.echo(t.Context(), e, "r"+body); err != nil {
						t.Error(err)
					}
				})
			case 1:
				others.Go(func() {
					other, err := openToy(t.Context(), e)
					if err != nil {
						t.Error(err)
						return
					}
					defer other.Close()
					if err := sendToy(t.Context(), other, body); err != nil {
						t.Error(err)
					} else if got, err := recvToy(t.Context(), other); got != body || err != nil {
						t.Errorf("received %q, %v, want %q", got, err, body)
					}
				})
			}
			for {
				ctx, cancel := t.Context(), func() {}
				if r.IntN(4) == 0 {
					ctx, cancel = context.WithTimeout(ctx, time.Duration(r.IntN(100))*time.Microsecond)
				}
				got, err := recvToy(ctx, st)
				cancel()
				if errors.Is(err, context.DeadlineExceeded) {
					continue
				}
				if got != body || err != nil {
					t.Fatalf("received %q, %v, want %q", got, err, body)
				}
				break
			}
		}
		s := st.socket
		s.mu.Lock()
		loans = s.streams.loan.uses
		s.mu.Unlock()
		if r.IntN(2) == 0 { // while the others are open or not
			others.Wait()
		}
		st.Close()
		others.Wait()
	}
	t.Logf("receivers read %d times", loans)
	if v := e.Snapshot(); loans == 0 || v.Reconnects != 0 {
		t.Errorf("%d loans; snapshot: %+v", loans, v)
	}
	checkStreamsBalanced(t, e)
}

// The writes of a lone stream do not yield once those of its opening are over, because no other goroutine has anything
// to add.
func TestLoneStreamDoesNotYield(t *testing.T) {
	_, e, st := lentStream(t, ignoreStream, nil)
	exchange := func() {
		if err := sendToy(t.Context(), st, "dping"); err != nil {
			t.Fatal(err)
		}
		expectToy(t, st, "dping")
	}
	for range 2 * crowdLasts {
		exchange()
	}
	before := e.Snapshot().Yields
	for range 10 {
		exchange()
	}
	if n := e.Snapshot().Yields - before; n != 0 {
		t.Errorf("%d of 10 writes have yielded", n)
	}
}
