package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"runtime"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/memory"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// stopwatch is a clock that the test sets.
type stopwatch struct{ now atomic.Int64 }

func (w *stopwatch) set(to time.Duration) { w.now.Store(int64(to)) }

func (w *stopwatch) read() time.Duration { return time.Duration(w.now.Load()) }

// newStale serves depts with the clock. The horizon stays at 0: requests later than the
// promise allows are answered as stale, with the possible age.
func newStale(t *testing.T, clock *stopwatch, config ServiceConfig) *fixture {
	t.Helper()
	tier, err := memory.New(memory.MinBudget)
	if err != nil {
		t.Fatal(err)
	}
	c, err := cache.New(cache.Config{
		Resources: []cache.Resource{{Name: "depts", Policy: cache.ServeStale}}, Origin: originFunc(echo),
		Tiers: []cache.Tier{tier}, Clock: clock.read,
	})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	c.SetPromise(0, true, "")
	c.Advance(0, cache.UpTo(1))
	service, err := NewService(c, []frontend.Resource{{Name: "depts"}}, config)
	if err != nil {
		t.Fatal(err)
	}
	if err := service.SetColumns(0, []resource.KeyColumn{{Name: "k", Kind: resource.Integer}}); err != nil {
		t.Fatal(err)
	}
	return &fixture{cache: c, service: service}
}

// TestQueuedRequestsAreJudgedLate: the start of a request that waited in the kernel's queue
// is the time at which it was read, which is after it began. With the time before the
// read(2) it could get a document older than promised.
func TestQueuedRequestsAreJudgedLate(t *testing.T) {
	t.Run("its connection was blocked", func(t *testing.T) {
		eachLoop(t, func(t *testing.T, by way) { testQueuedRequest(t, by, false) })
	})
	t.Run("its loop was blocked", func(t *testing.T) {
		runWays(t, ways[2:3], func(t *testing.T, by way) { testQueuedRequest(t, by, true) })
	})
}

func testQueuedRequest(t *testing.T, by way, other bool) {
	testkit.NoLeaks(t)
	clock := new(stopwatch)
	var blocked atomic.Int64
	release := make(chan struct{})
	f := newStale(t, clock, ServiceConfig{OpenAPI: func(func(int) bool) []byte {
		blocked.Add(1)
		<-release
		return []byte("{}")
	}})
	s := listen(t, f, by.config(Config{}))
	c := dial(t, s)
	defer c.Close()
	r := bufio.NewReader(c)
	get := func() string {
		t.Helper()
		io.WriteString(c, requestText("GET", "/depts/1"))
		answer, err := readAnswer(r, "GET")
		if err != nil {
			t.Fatal(err)
		}
		return answer.Header.Get("Cache-Status")
	}
	get()
	if got := get(); got != "slipstream; hit" {
		t.Fatalf("at first: %q, want a hit", got)
	}
	// The process stops.
	var blockers []net.Conn
	want := int64(1)
	if other {
		want = int64(runtime.GOMAXPROCS(0)) // all the loops
		for range 40 {                      // some for each loop
			blockers = append(blockers, dial(t, s))
		}
	} else {
		blockers = append(blockers, c)
	}
	for _, b := range blockers {
		defer b.Close()
		io.WriteString(b, requestText("GET", "/openapi.json"))
	}
	testkit.Eventually(t, patience, func() error {
		if n := blocked.Load(); n < want {
			return fmt.Errorf("%d block, want %d", n, want)
		}
		return nil
	})
	io.WriteString(c, requestText("GET", "/depts/1"))
	time.Sleep(20 * time.Millisecond) // until it is in the kernel's queue
	clock.set(5 * time.Second)
	close(release)
	if !other {
		if _, err := readAnswer(r, "GET"); err != nil {
			t.Fatal(err)
		}
	}
	answer, err := readAnswer(r, "GET")
	if err != nil {
		t.Fatal(err)
	}
	if got, want := answer.Header.Get("Cache-Status"), "slipstream; hit; ttl=-5; detail=unverified"; got != want {
		t.Errorf("Cache-Status %q, want %q", got, want)
	}
	clock.set(9 * time.Second)
	if got := get(); got != "slipstream; hit; ttl=-9; detail=unverified" {
		t.Errorf("on the same connection at 9 s: %q", got)
	}
}

// TestHeadInPieces: a request can begin to arrive long before it can be answered. The time
// at which its last byte was read counts.
func TestHeadInPieces(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		clock := new(stopwatch)
		s := listen(t, newStale(t, clock, ServiceConfig{}), by.config(Config{}))
		askOnce(t, s, "GET", "/depts/1")
		c := dial(t, s)
		defer c.Close()
		for _, part := range []string{"GET /depts/1 HTTP", "/1.1\r\nHost: h\r\n", "X: y\r"} {
			io.WriteString(c, part)
			time.Sleep(10 * time.Millisecond)
		}
		clock.set(3 * time.Second)
		io.WriteString(c, "\n\r\n")
		answer, err := readAnswer(bufio.NewReader(c), "GET")
		if err != nil {
			t.Fatal(err)
		}
		if got, want := answer.Header.Get("Cache-Status"), "slipstream; hit; ttl=-3; detail=unverified"; got != want {
			t.Errorf("Cache-Status %q, want %q", got, want)
		}
	})
}
