package loop_test

import (
	"fmt"
	"io"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// toyOwner owns memory that is overwritten as soon as it is released.
type toyOwner struct {
	toy      *toy
	p        []byte
	released atomic.Bool
}

// Release implements [loop.Owner].
func (w *toyOwner) Release() {
	w.toy.owned.released.Add(1)
	if w.released.Swap(true) {
		w.toy.t.Error("memory was released twice")
		return
	}
	clear(w.p) // if a write still reads it, the race detector reports it
}

// wantReleased waits until n pieces of memory have been released.
func (y *toy) wantReleased(n int64) {
	y.t.Helper()
	testkit.Eventually(y.t, patience, func() error {
		if got := y.owned.released.Load(); got != n {
			return fmt.Errorf("%d pieces of memory were released, want %d", got, n)
		}
		return nil
	})
}

// Lent memory is sent unchanged, and released only after it has been sent.
func TestLinkOwned(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, nil)
		c := y.dial()
		c.send("owned 100\nowned 20000\nhold h\nowned 300\nowned 30000\nhold i\nowned 40000\n")
		h, i := y.hold(), y.hold()
		c.want(string(pattern[:100]) + string(pattern[:20_000]))
		y.wantReleased(3) // those of 300 and 100 bytes were copied
		i.finish()
		c.wantSilence(20 * time.Millisecond)
		if n := y.owned.released.Load(); n != 3 {
			t.Errorf("%d pieces of memory were released, want 3: the others wait for an answer", n)
		}
		h.finish()
		c.want("h\n" + string(pattern[:300]) + string(pattern[:30_000]) + "i\n" + string(pattern[:40_000]))
		y.wantReleased(5)
		// More than the kernel accepts at once.
		c.send(fmt.Sprintf("owned %d\nowned %d\n", len(pattern), len(pattern)))
		c.want(string(pattern[:1<<20]))
		if n := y.owned.released.Load(); n > 6 {
			t.Errorf("%d pieces of memory were released, want 5 or 6: no client has read the last", n)
		}
		c.want(string(pattern[1<<20:]) + string(pattern))
		y.wantReleased(7)
	})
}

// Memory lent to connections that end is released once, whichever side ends them.
func TestLinkOwnedByConnectionsThatEnd(t *testing.T) {
	ends := []string{"", "abort\n", "panic\n", "now panic\n", "now abort\n", "hold a\nowned 50000\nnow b\nowned 50000\n"}
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(c *loop.Config) { c.MaxOutput = 64 << 20 })
		for round := range 4 * len(ends) {
			c := y.dial()
			// Some of it is in flight when the connection ends.
			c.send("hold first\nowned 50000\n")
			first := y.hold()
			c.send(fmt.Sprintf("owned %d\n", len(pattern)))
			c.send(ends[round%len(ends)])
			if round/len(ends)%2 == 0 {
				first.finish()
				_, _ = io.ReadFull(c.r, make([]byte, 100_000))
			}
			c.raw.Close()
			first.finish()
			for ended := false; !ended; {
				select {
				case r := <-y.held:
					r.finish()
				case <-y.closed:
					ended = true
				case <-time.After(patience):
					t.Fatal("the connection has not ended within a minute")
				}
			}
		}
		y.wantReleased(y.owned.made.Load())
	})
}

// Memory that a session links in Closed is released, too.
func TestLinkOwnedInClosed(t *testing.T) {
	eachMode(t, func(t *testing.T, m mode) {
		y := startToy(t, m, func(config *loop.Config) {
			inner := config.OnClose
			config.OnClose = func(c *loop.Conn, err error) {
				y := c.Session().(*toySession).toy
				y.owned.made.Add(1)
				w := &toyOwner{toy: y, p: make([]byte, 50_000)}
				c.Output().LinkOwned(w.p, w)
				inner(c, err)
			}
		})
		c := y.dial()
		c.send("a\n")
		c.want("a\n")
		c.Close()
		y.ended()
		y.wantReleased(1)
	})
}
