package loop

import (
	"crypto/tls"
	"errors"
	"io"
	"net"
	"slices"
	"sync"
	"testing"
	"time"
)

// TestHandshakesInTurn: there are never more handshakes at a time than places, and addresses get
// them in turn.
func TestHandshakesInTurn(t *testing.T) {
	h := newHandshakes(1)
	h.take(1)
	var mu sync.Mutex
	var order []uint64
	var waiting sync.WaitGroup
	for i, client := range []uint64{1, 1, 1, 2, 3} {
		waiting.Go(func() { // ends when it has got its place from those before it
			h.take(client)
			mu.Lock()
			order = append(order, client)
			mu.Unlock()
			h.give()
		})
		for n := 0; n != i+1; time.Sleep(time.Millisecond) { // until it is queued
			h.mu.Lock()
			n = h.queue.Len()
			h.mu.Unlock()
		}
	}
	h.give()
	waiting.Wait()
	if want := []uint64{1, 2, 3, 1, 1}; !slices.Equal(order, want) {
		t.Errorf("the places were given to %v, want %v", order, want)
	}
	if h.free != 1 || h.queue.Len() != 0 {
		t.Errorf("%d places are free and %d wait, want 1 and none", h.free, h.queue.Len())
	}
}

// TestHandshakeIsShort: no more of a handshake is read than maxHandshake, no place is held while
// waiting for the peer, and reads after the handshake are not limited.
func TestHandshakeIsShort(t *testing.T) {
	h := newHandshakes(1)
	ours, theirs := net.Pipe()
	defer ours.Close()
	defer theirs.Close()
	c := &shakingConn{Conn: ours, all: h, left: 3}
	free := func() int {
		h.mu.Lock()
		defer h.mu.Unlock()
		return h.free
	}
	go func() { // ends when both have been read
		for free() != 1 {
			time.Sleep(time.Millisecond)
		}
		theirs.Write([]byte("ab"))
		for free() != 1 {
			time.Sleep(time.Millisecond)
		}
		theirs.Write([]byte("cd"))
	}()
	b := make([]byte, 8)
	for _, want := range []string{"ab", "c"} {
		n, err := c.Read(b)
		if err != nil || string(b[:n]) != want || free() != 0 {
			t.Fatalf("got %q, %v, %d free places, want %q and none", b[:n], err, free(), want)
		}
	}
	if _, err := c.Read(b); !errors.Is(err, errLongHandshake) || free() != 1 {
		t.Fatalf("past the bound: %v, %d free places", err, free())
	}
	c.over = true
	if n, err := io.ReadAtLeast(c, b, 1); err != nil || string(b[:n]) != "d" || free() != 1 {
		t.Errorf("after the handshake: %q, %v, %d free places, want \"d\" and 1", b[:n], err, free())
	}
	theirs.Close()
	c.over = false
	if err := c.shake(tls.Server(c, &tls.Config{})); err == nil || free() != 1 || !c.over {
		t.Errorf("a handshake that fails: %v, %d free places", err, free())
	}
}
