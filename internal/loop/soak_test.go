package loop_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Everything together, repeatedly: pipelines, peers that disconnect in every way, answers
// that complete late, detached connections, small limits, and servers that shut down in the
// middle of it. The checks of startToy at the end of each server must hold.
func TestSoakEverything(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		seed := testkit.Seed(t)
		until := time.Now().Add(testkit.SoakTime(t, 2*time.Second) / time.Duration(len(modes())))
		for round := uint64(0); round == 0 || time.Now().Before(until); round++ {
			t.Run(fmt.Sprint("round", round), func(t *testing.T) { soak(t, m, seed+round, until) })
		}
	})
}

func soak(t *testing.T, m mode, seed uint64, until time.Time) {
	r := testkit.Fork(seed, 1000)
	y := startToy(t, m, func(c *loop.Config) {
		c.MaxOutput = 1 << (10 + r.IntN(9))
		c.MaxDeferred = 1 + r.IntN(100)
		c.MaxConnections = 60 + r.IntN(40) // a waiting connection would cause others to be closed: see places.go
		c.Loops = 1 + r.IntN(3)
		c.DrainGrace = time.Duration(r.IntN(50)) * time.Millisecond
	})
	until = minTime(until, time.Now().Add(5*time.Second))
	stop := make(chan struct{})
	background := make(chan struct{}, 3)
	go func() { // completes held answers; ended by stop, awaited below
		defer func() { background <- struct{}{} }()
		for {
			select {
			case r := <-y.held:
				go r.finish()
			case <-stop:
				return
			}
		}
	}()
	go func() { // owns detached connections; ended by stop, awaited below
		defer func() { background <- struct{}{} }()
		for {
			select {
			case h := <-y.detached:
				_, _ = h.nc.Write(h.unread) // the peer may have gone
				h.nc.Close()
			case <-stop:
				return
			}
		}
	}()
	go func() { // ended by stop, awaited below
		defer func() { background <- struct{}{} }()
		for {
			select {
			case <-y.closed:
			case <-stop:
				return
			}
		}
	}()
	var requests atomic.Int64
	all(12, func(i int) {
		r := testkit.Fork(seed, uint64(i))
		for ran := false; !ran || time.Now().Before(until); ran = true {
			requests.Add(soakConnection(y, r))
		}
	})
	// The remaining connections end with the server, half of the time in order.
	ctx, cancel := context.WithTimeout(t.Context(), time.Duration(r.IntN(2))*5*time.Second)
	defer cancel()
	if err := y.server.Shutdown(ctx); err != nil && !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Shutdown: %v", err)
	}
	close(stop)
	for range cap(background) {
		<-background
	}
	t.Logf("%d requests, %+v", requests.Load(), y.server.Stats())
}

// soakConnection runs one connection from its start to its end and returns how many requests it
// made.
func soakConnection(y *toy, r *rand.Rand) int64 {
	raw, err := net.Dial("tcp", y.addr)
	if err != nil {
		y.t.Errorf("dial: %v", err)
		return 0
	}
	defer raw.Close()
	c := y.client(raw)
	kind := r.IntN(8)
	if kind < 4 { // the answers are known
		n := 1 + r.IntN(60)
		pipeline(c, r, n)
		return int64(n)
	}
	var text strings.Builder
	n := 1 + r.IntN(40)
	for range n {
		text.WriteString([]string{"a\n", "hold b\n", "idhold c\n", "later 1 d\n", "id 2 e\n", "now f\n", "big 30000\n", "owned 100\n", "owned 30000\n",
			"put 5\n12345", "putlater 30000\n" + string(pattern[:30000])}[r.IntN(11)])
	}
	last := []string{"end\n", "abort\n", "detach\nrest", "panic\n", "hold end\n", "hold detach\n", "now abort\n", "incomplete", "put 200000\nincomplete"}[r.IntN(9)]
	// From here on anything may be cut by either side.
	if _, err := io.WriteString(c, text.String()+last); err != nil {
		return 0
	}
	switch kind {
	case 4: // leaves immediately
	case 5:
		if t, ok := raw.(*net.TCPConn); ok {
			_ = t.SetLinger(0)
		}
	case 6:
		if h, ok := c.Conn.(interface{ CloseWrite() error }); ok {
			_ = h.CloseWrite()
		}
		_, _ = io.Copy(io.Discard, c.r)
	case 7:
		_ = c.SetReadDeadline(time.Now().Add(time.Duration(r.IntN(20)) * time.Millisecond))
		_, _ = io.Copy(io.Discard, c.r)
	}
	return int64(n)
}

func minTime(a, b time.Time) time.Time {
	if a.Before(b) {
		return a
	}
	return b
}
