package access

import (
	"context"
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/go-jose/go-jose/v4"
)

// takePlaces takes all slots for signature checks.
func (g *Gate) takePlaces(t *testing.T) {
	t.Helper()
	for n := g.checking.free; n > 0; n-- {
		if err := g.checking.take(context.Background(), 0); err != nil {
			t.Fatal(err)
		}
	}
}

// A token that waits for its check ends with its request.
func TestChecksEndWithTheRequest(t *testing.T) {
	g, _ := newGate(t, nil)
	g.takePlaces(t)
	token := withToken(sign(t, jose.HS256, octKey, "oct", claimSet(nil)))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if caller, refusal := g.Identify(ctx, token); caller != nil || refusal == nil || refusal.Status != 504 {
		t.Errorf("got %v, %+v, want 504", caller, refusal)
	}
	g.checking.give()
	// The slot is not lost with the waiter that has given up.
	accepted(t, g, token, "jwt:alice")
}

// Tokens that wait for a check are served from each client in turn, one client's flood
// does not get another's token refused, and the queue is bounded.
func TestChecksAreFair(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := checking{free: 1}
		if err := p.take(t.Context(), 1); err != nil {
			t.Fatal(err)
		}
		crowded, served := 0, make(chan uint64, 2*maxChecking)
		wait := func(client uint64) {
			go func() { // ends when it is served or refused, below
				err := p.take(t.Context(), client)
				if errors.Is(err, errCrowded) {
					client = 0
				} else if err != nil {
					t.Error(err)
				}
				served <- client
			}()
			synctest.Wait()
		}
		for range maxChecking + 10 {
			wait(1)
		}
		for len(served) > 0 {
			if client := <-served; client != 0 {
				t.Errorf("client %d was served, although no slot is free", client)
			}
			crowded++
		}
		if crowded != 10 {
			t.Errorf("%d of the flood were refused, want 10", crowded)
		}
		wait(2)
		if client := <-served; client != 0 {
			t.Errorf("client %d was served, although no slot is free", client)
		}
		for turn := 1; ; turn++ {
			p.give()
			if client := <-served; client == 2 {
				if turn > 2 {
					t.Errorf("the second client was served as number %d, want one of the first two", turn)
				}
				break
			}
		}
		for p.queue.Len() > 0 {
			p.give()
		}
		if n := p.crowded(); n != 11 {
			t.Errorf("%d are counted as refused, want 11", n)
		}
	})
}
