package pipe

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// smallMessage is the size of the bodies that are cut at every byte.
const smallMessage = 300

// Calls are canceled after each byte of their requests and of their replies. Each call ends once, its lent
// memory is released once, its reply memory is not written to afterwards, and later calls continue.
func TestCancelAtEveryByteSoak(t *testing.T) {
	soak := testkit.SoakTime(t, 2*time.Second)
	for began, round := time.Now(), 0; round == 0 || time.Since(began) < soak; round++ {
		for _, network := range []string{"", "unix", "tcp"} {
			for _, tickets := range []bool{false, true} {
				// A subtest closes its listeners when it ends.
				ok := t.Run(fmt.Sprintf("%s/tickets=%v/%d", network, tickets, round), func(t *testing.T) {
					testkit.NoLeaks(t)
					cancelAtBytes(t, network, tickets, began.Add(soak))
				})
				if !ok {
					return
				}
			}
		}
	}
}

// cancelAtBytes cancels calls at every byte of small messages, and then at random bytes of large ones until the
// given time, at least a few.
func cancelAtBytes(t *testing.T, network string, tickets bool, until time.Time) {
	r := testkit.Rand(t)
	head := 5
	if tickets {
		head = 13
	}
	first := r.IntN(head + smallMessage)
	for i := range head + smallMessage - 1 { // after the last byte, the request would be answered
		if i >= 3 && time.Now().After(until) {
			break
		}
		at := 1 + (first+i)%(head+smallMessage-1)
		cancelLent(t, network, tls.Certificate{}, tickets, smallMessage, int64(at))
		if t.Failed() {
			t.Fatalf("request of %d bytes canceled after %d", head+smallMessage, at)
		}
	}
	for range 3 {
		size := 16<<10 + r.IntN(1<<20)
		at := 1 + r.IntN(head+size-1)
		cancelLent(t, network, tls.Certificate{}, tickets, size, int64(at))
		if t.Failed() {
			t.Fatalf("request of %d bytes canceled after %d", head+size, at)
		}
	}
	s := startTrickling(t, network, tickets)
	e := s.engine(func(c *Config) {
		c.Protocol, c.choices.SoloAfter, c.choices.DirectReply = splitting{c.Protocol, tickets}, 2, 1
	})
	defer e.Close()
	whole := head + smallMessage + tailLen
	for i := range whole - 1 {
		if i >= 3 && time.Now().After(until) {
			break
		}
		cancelReply(t, s, e, smallMessage, 1+(first+i)%(whole-1))
	}
	for range 3 {
		size := 16<<10 + r.IntN(1<<20)
		cancelReply(t, s, e, size, 1+r.IntN(head+size))
	}
	checkBalanced(t, e)
	if v := e.Snapshot(); v.Reconnects != 0 {
		t.Errorf("%d reconnects, want 0", v.Reconnects)
	}
}

// cancelReply cancels a call with a reply of size bytes after the first at bytes of the reply.
func cancelReply(t *testing.T, s *tricklingServer, e *Engine, size, at int) {
	t.Helper()
	room := make([]byte, max(size, directReply))
	ctx, cancel := context.WithCancel(t.Context())
	defer cancel()
	c := s.newCall(e, "rlarge")
	c.ReadInto(room)
	ended := make(chan error, 1)
	go func() { ended <- e.Do(ctx, c) }() // ended by cancel; waited for below
	q := <-s.parts
	frame := q.frame("r" + wantedBody(size) + tail)
	q.peer.send(frame[:at])
	cancel()
	err := <-ended
	if !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || c.Placed() != nil {
		t.Fatalf("reply of %d bytes canceled after %d: %v", len(frame), at, err)
	}
	c.Release()
	poison(room)
	q.peer.send(frame[at:])
	if err := s.echoSplit(t.Context(), e, fmt.Sprint("r", at)); err != nil {
		t.Fatalf("reply of %d bytes canceled after %d: the next call: %v", len(frame), at, err)
	}
	if !poisoned(room) {
		t.Fatalf("reply of %d bytes canceled after %d: memory was written to after the call had ended", len(frame), at)
	}
}
