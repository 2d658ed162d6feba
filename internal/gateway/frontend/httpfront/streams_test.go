package httpfront

import (
	"context"
	"crypto/tls"
	"fmt"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// waiting is an origin whose documents with keys of five digits wait until goOn is closed.
func waiting(goOn <-chan struct{}) originFunc {
	return func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		if len(id) > 4 {
			<-goOn
		}
		return jsonOrigin(ctx, r, id[:min(len(id), 4)])
	}
}

// openWindow opens the window for answers of 2 GiB.
func (c *http2Conn) openWindow() { c.frame(8, 0, 0, []byte{0x7f, 0, 0, 0}) }

// TestBusyHTTP2HoldsLittle: a connection that is never without a request is not charged for all
// requests that it has ever sent.
func TestBusyHTTP2HoldsLittle(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		goOn := make(chan struct{})
		defer close(goOn)
		budget := loop.NewBudget(1 << 20)
		s, secure, trust := listenTLS(t, newFixture(t, waiting(goOn)), by.config(Config{ConnConfig: frontend.ConnConfig{Budget: budget}}))
		c := dialHTTP2(t, secure, trust)
		c.openWindow()
		c.get(1, "/depts/10000") // is in flight to the end
		// 32 fields of 103 bytes, which no table shortens, of requests that load nothing: a load could
		// wait for the one that waits.
		field := append([]byte{0, 1, 'x', 100}, strings.Repeat("y", 100)...)
		head := append(headOf("/none/20"), strings.Repeat(string(field), 32)...)
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

// TestPingsHoldLittle: frames other than requests are charged with the maximum that net/http
// keeps of them.
func TestPingsHoldLittle(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		goOn := make(chan struct{})
		defer close(goOn)
		budget := loop.NewBudget(1 << 20)
		s, secure, trust := listenTLS(t, newFixture(t, waiting(goOn)), by.config(Config{ConnConfig: frontend.ConnConfig{Budget: budget}, MaxHeader: 8 << 10}))
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

// TestStreamsAreRefusedBeforeCuts: a connection with many requests in flight while memory is short
// has further ones refused, and is not closed.
func TestStreamsAreRefusedBeforeCuts(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		goOn := make(chan struct{})
		f := newFixture(t, waiting(goOn))
		budget := loop.NewBudget(2 << 20) // 128 requests
		s, secure, trust := listenTLS(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{Budget: budget}}))
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
					return fmt.Errorf("%d requests are in flight and %d ended, want %d together", under, done, asked.Load())
				}
				return nil
			})
		}
		if n := s.handler.streams.Load(); n < 64 || n > 128 {
			t.Errorf("%d requests are in flight, want 64 to 128", n)
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

// TestUnreadHTTP2IsBounded: answers for which an HTTP/2 client leaves no window count as waiting for
// clients: because of large ones, beyond their own bound, the connection is closed; because of small
// ones, requests are refused or the connection is closed.
func TestUnreadHTTP2IsBounded(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		for _, test := range []struct {
			name    string
			size    int64
			waiting func(*Server, loop.BudgetStats) int64 // bytes
		}{
			{"large", 200 << 10, func(s *Server, _ loop.BudgetStats) int64 { return s.LargePending() }},
			{"small", 50 << 10, func(_ *Server, b loop.BudgetStats) int64 { return b.Used }},
		} {
			t.Run(test.name, func(t *testing.T) {
				testkit.NoLeaks(t)
				const bound = 4 << 20
				budget := loop.NewBudget(bound)
				f := newFixture(t, jsonOrigin)
				s, secure, trust := listenTLS(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{Budget: budget, Large: loop.NewLargeBudget(bound)}}))
				c := dialHTTP2(t, secure, trust)
				c.frame(4, 0, 0, []byte{0, 4, 0, 0, 0, 0}) // SETTINGS_INITIAL_WINDOW_SIZE 0
				var ended atomic.Int64
				const asked = 120 // of which the bound holds 20 or 80
				for i := range asked {
					c.get(uint32(2*i+1), fmt.Sprintf("/depts/%d", test.size+int64(i)))
				}
				closed := make(chan struct{})
				// Ends with the connection.
				go func() {
					defer close(closed)
					for c.awaitEnd(0) {
						ended.Add(1)
					}
				}()
				testkit.Eventually(t, patience, func() error {
					waits, streams := test.waiting(s, budget.Stats()), s.handler.streams.Load()
					switch large := test.name == "large"; {
					case waits > bound:
						return fmt.Errorf("%d requests with %d bytes wait, want at most %d bytes", streams, waits, bound)
					case large && s.handler.large.Stats().Closed == 0: // no other client has unread answers
						return fmt.Errorf("%d bytes of %d requests wait, and the connection is not closed", waits, streams)
					case !large && budget.Stats().Closed == 0 && (ended.Load()+streams != asked || streams*test.size > bound):
						return fmt.Errorf("%d requests of %d bytes wait, want at most %d bytes or the connection closed", streams, test.size, bound)
					}
					return nil
				})
				if a := askOnce(t, s, "GET", "/depts/1500"); a.StatusCode != 200 {
					t.Errorf("another client: %d, want 200", a.StatusCode)
				}
				c.Close()
				<-closed
				testkit.Eventually(t, patience, func() error {
					s.conns.account()
					if used, large := budget.Stats().Used, s.LargePending(); used > 16<<10 || large != 0 {
						return fmt.Errorf("%d and %d bytes are counted after all", used, large)
					}
					return nil
				})
			})
		}
	})
}

// TestLimitsOfAddressesOverHTTP2: the limits of an address include requests and connections of HTTP/2.
func TestLimitsOfAddressesOverHTTP2(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		t.Run("rate", func(t *testing.T) {
			testkit.NoLeaks(t)
			f := newConfigured(t, jsonOrigin, ServiceConfig{RequestConfig: frontend.RequestConfig{ClientLimit: limit.New(limit.Config{Rate: 0.001, Burst: 6})}}, nil)
			// A load would count as well.
			if _, err := f.cache.Get(t.Context(), cache.Key{ID: "1500"}, f.cache.Now()); err != nil {
				t.Fatal(err)
			}
			s, secure, trust := listenTLS(t, f, by.config(Config{}))
			for i := range 10 {
				client := clientOf(t, trust, i != 4) // HTTP/1 in between; one connection each
				want := 200
				if i >= 6 {
					want = 429
				}
				answer, err := client.Get("https://" + secure + "/depts/1500")
				if err != nil || answer.StatusCode != want || (answer.ProtoMajor == 2) != (i != 4) {
					t.Fatalf("request %d: %v, %v, want %d", i, answer, err, want)
				}
				answer.Body.Close()
				client.CloseIdleConnections()
			}
			if a := askOnce(t, s, "GET", "/depts/1500"); a.StatusCode != 429 {
				t.Errorf("clear text after HTTP/2: %d, want 429", a.StatusCode)
			}
		})
		t.Run("connections", func(t *testing.T) {
			testkit.NoLeaks(t)
			_, secure, trust := listenTLS(t, newFixture(t, jsonOrigin), by.config(Config{ConnConfig: frontend.ConnConfig{MaxPerAddress: 3}}),
				func(l net.Listener) net.Listener { return farListener{l} })
			trust.NextProtos = []string{"h2"}
			var open []*http2Conn
			for range 3 {
				c := dialHTTP2(t, secure, trust)
				if c.get(1, "/depts/300"); !c.awaitEnd(1) {
					t.Fatal("a connection within the limit was closed")
				}
				open = append(open, c)
			}
			raw, err := tls.Dial("tcp", secure, trust)
			if err == nil {
				raw.Close()
				t.Error("a fourth connection of the address was accepted")
			}
			open[0].Close()
			testkit.Eventually(t, patience, func() error {
				raw, err := tls.Dial("tcp", secure, trust)
				if err == nil {
					raw.Close()
				}
				return err
			})
			if open[2].get(3, "/depts/300"); !open[2].awaitEnd(3) {
				t.Error("an older connection was closed")
			}
		})
	})
}

// farListener makes its connections look as if they came from another machine: those of loopback
// are not limited.
type farListener struct{ net.Listener }

type farConn struct{ net.Conn }

func (l farListener) Accept() (net.Conn, error) {
	c, err := l.Listener.Accept()
	if err != nil {
		return nil, err
	}
	return farConn{c}, nil
}

func (farConn) RemoteAddr() net.Addr { return &net.TCPAddr{IP: net.IPv4(192, 0, 2, 1), Port: 1} }
