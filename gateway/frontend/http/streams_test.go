package httpfront

import (
	"context"
	"fmt"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// waiting is an origin of which documents with keys of five digits wait until goOn is closed.
func waiting(goOn <-chan struct{}) originFunc {
	return func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		if len(id) > 4 {
			<-goOn
		}
		return jsonOrigin(ctx, r, id[:min(len(id), 4)])
	}
}

// openWindow lets answers of 2 GiB come.
func (c *http2Conn) openWindow() { c.frame(8, 0, 0, []byte{0x7f, 0, 0, 0}) }

// TestBusyHTTP2HoldsLittle: a connection that is never without a request does not count as if it
// held all requests that it has ever sent.
func TestBusyHTTP2HoldsLittle(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		goOn := make(chan struct{})
		defer close(goOn)
		budget := loop.NewBudget(1 << 20)
		s, secure, trust := listenTLS(t, newFixture(t, waiting(goOn)), by.config(Config{Budget: budget}))
		c := dialHTTP2(t, secure, trust)
		c.openWindow()
		c.get(1, "/depts/10000") // is under way to the end
		// 32 fields of 103 bytes, which no table shortens.
		field := append([]byte{0, 1, 'x', 100}, strings.Repeat("y", 100)...)
		head := append(headOf("/depts/20"), strings.Repeat(string(field), 32)...)
		for i := range 600 {
			stream := uint32(2*i + 3)
			if err := c.frame(1, 0x5, stream, head); err != nil || !c.awaitEnd(stream) {
				t.Fatalf("request %d of the connection was not answered: %v", i, err)
			}
		}
		s.conns.account()
		// The request that waits, and at most the last one.
		if got, limit := budget.Stats().Used, int64(2*(weightOfStream+8<<10)); got > limit {
			t.Errorf("after 2 MB of requests the connection counts %d bytes, want at most %d", got, limit)
		}
		if n := budget.Stats().Closed; n != 0 {
			t.Errorf("%d connections were closed, want none", n)
		}
	})
}

// TestPingsHoldLittle: what comes beside requests counts as what net/http keeps of it at most.
func TestPingsHoldLittle(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		goOn := make(chan struct{})
		defer close(goOn)
		budget := loop.NewBudget(1 << 20)
		s, secure, trust := listenTLS(t, newFixture(t, waiting(goOn)), by.config(Config{Budget: budget, MaxHeader: 8 << 10}))
		c := dialHTTP2(t, secure, trust)
		c.openWindow()
		c.get(1, "/depts/10000")
		for range 100 { // 1.7 MB, at a pace at which the answers are read
			for range 1000 {
				c.frame(8, 0, 0, []byte{0, 0, 0, 1}) // WINDOW_UPDATE
			}
			c.frame(6, 0, 0, make([]byte, 8)) // PING
			if !c.awaitFrame(6) {
				t.Fatal("the connection was closed")
			}
		}
		s.conns.account()
		if got, limit := budget.Stats().Used, int64(128<<10); got > limit {
			t.Errorf("the connection counts %d bytes, want at most %d", got, limit)
		}
	})
}

// TestStreamsAreRefusedBeforeCuts: a connection that has many requests under way while memory is
// short hears that of more of them, and is not closed.
func TestStreamsAreRefusedBeforeCuts(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		goOn := make(chan struct{})
		f := newFixture(t, waiting(goOn))
		budget := loop.NewBudget(2 << 20) // 128 requests
		s, secure, trust := listenTLS(t, f, by.config(Config{Budget: budget}))
		var ended, asked atomic.Int64
		var conns []*http2Conn
		for range 6 {
			c := dialHTTP2(t, secure, trust)
			c.openWindow()
			conns = append(conns, c)
			for i := range streamsAtOnce {
				asked.Add(1)
				c.get(uint32(2*i+1), fmt.Sprintf("/depts/%d", 10_000+i))
			}
			// Ends with the connection.
			go func() {
				for c.awaitEnd(0) {
					ended.Add(1)
				}
			}()
			testkit.Eventually(t, patience, func() error {
				if under, done := s.handler.streams.Load(), ended.Load(); under+done != asked.Load() {
					return fmt.Errorf("%d requests are under way and %d ended, want %d together", under, done, asked.Load())
				}
				return nil
			})
		}
		if n := s.handler.streams.Load(); n < 64 || n > 128 {
			t.Errorf("%d requests are under way, want 64 to 128", n)
		}
		s.conns.account()
		budget.Review()
		if b := budget.Stats(); b.Closed != 0 || b.Used > b.Limit {
			t.Errorf("%d bytes are counted and %d connections were closed, want at most %d and none", b.Used, b.Closed, b.Limit)
		}
		close(goOn)
		testkit.Eventually(t, patience, func() error {
			if done := ended.Load(); done != asked.Load() {
				return fmt.Errorf("%d requests were answered, want %d", done, asked.Load())
			}
			return nil
		})
		for _, c := range conns {
			c.Close()
		}
		testkit.Eventually(t, patience, func() error {
			s.conns.account()
			if used := budget.Stats().Used; used != 0 {
				return fmt.Errorf("%d bytes are counted after all, want 0", used)
			}
			return nil
		})
	})
}
