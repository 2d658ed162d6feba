//go:build !race

package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/turnwatch"
)

// TestTurnsOfBatches: documents that have neither a form in gzip nor an entity tag are
// compressed and hashed by a goroutine, and large ones are written in pieces.
func TestTurnsOfBatches(t *testing.T) {
	const first, documents = 60_000, 200
	var keys []string
	for i := range documents {
		keys = append(keys, fmt.Sprint(first+i))
	}
	for _, test := range []struct {
		name, target, coding string
		keys                 []string
	}{
		{"gzip", "/depts?key=" + strings.Join(keys, "&key="), "gzip", keys},
		{"hash", "/depts?key=" + strings.Join(keys, "&key="), "identity", keys},
		{"hash one", "/depts/7000000", "identity", []string{"7000000"}},
		{"compress one", "/depts/60000", "gzip", keys[:1]},
		{"small ones", "/depts?key=" + strings.Repeat("4000&key=", 999) + "4000", "identity", []string{"4000"}},
		{"small ones in gzip", "/depts?key=" + strings.Repeat("4000&key=", 999) + "4000", "gzip", []string{"4000"}},
	} {
		t.Run(test.name, func(t *testing.T) {
			turnwatch.Within(t, func(t *testing.T, _ *turnwatch.Watch) {
				f := newConfigured(t, jsonOrigin, ServiceConfig{Compression: []string{"gzip"}}, nil)
				many := make([]cache.Key, len(test.keys))
				for i, id := range test.keys {
					many[i] = cache.Key{ID: id}
				}
				if err := f.cache.GetMany(t.Context(), many, f.cache.Now(), make([]cache.Answer, len(many))); err != nil {
					t.Fatal(err)
				}
				if !f.cache.PeekMany(many, f.cache.Now(), make([]cache.Answer, len(many))) {
					t.Fatal("the documents are not all in memory")
				}
				s := listen(t, f, Config{})
				c := dial(t, s)
				defer c.Close()
				for range 3 {
					io.WriteString(c, requestText("GET", test.target, "Accept-Encoding", test.coding))
					answer, err := readAnswer(bufio.NewReader(c), "GET")
					if err != nil {
						t.Fatal(err)
					}
					if got := decode(t, answer); answer.StatusCode != http.StatusOK || !strings.Contains(string(got), `{"id":`+test.keys[len(test.keys)-1]+`,`) {
						t.Fatalf("%d, %.80q", answer.StatusCode, got)
					}
				}
			})
		})
	}
}

// A crowd that pipelines without reading, as in a case that was measured externally: 3,000
// connections with 250 requests each for 1.5 KB.
const crowd = 3000

// TestPipelinesOfACrowd: a new connection is answered within a second and after a small part
// of the crowd's work, and an established one waits less than ten times as long as without the
// crowd.
func TestPipelinesOfACrowd(t *testing.T) {
	var seen []crowdFigures
	attempt := func(t *testing.T, w *turnwatch.Watch) {
		figures := besideCrowd(t, w)
		t.Log(figures)
		seen = append(seen, figures)
	}
	turnwatch.Within(t, attempt)
	// While the machine is busy, the test waits for other programs.
	for len(seen) < 5 && !slices.ContainsFunc(seen, crowdFigures.good) && !t.Failed() {
		turnwatch.Within(t, attempt)
	}
	if !slices.ContainsFunc(seen, crowdFigures.good) {
		t.Errorf("in none of %d attempts was a new connection answered within a second while p99 of another stayed below ten times its value without the crowd", len(seen))
	}
}

// crowdFigures is how long others wait next to a crowd.
type crowdFigures struct {
	first         time.Duration // of a new connection
	alone, beside time.Duration // p99 of one that is established
	samples       int           // while the crowd was busy
}

// good compares with at least 400 us: below that the scheduler dominates.
func (f crowdFigures) good() bool {
	return f.first < time.Second && f.samples >= 100 && f.beside < 10*max(f.alone, 400*time.Microsecond)
}

func (f crowdFigures) String() string {
	return fmt.Sprintf("a new connection was answered after %v; p99 of an established one: alone %v, beside the crowd %v, %d times",
		f.first, f.alone, f.beside, f.samples)
}

// besideCrowd measures while one loop has the work of the whole crowd.
func besideCrowd(t *testing.T, w *turnwatch.Watch) (figures crowdFigures) {
	testkit.NoLeaks(t)
	f := newConfigured(t, jsonOrigin, ServiceConfig{}, nil)
	processors := runtime.GOMAXPROCS(1) // one loop
	s := listen(t, f, Config{})
	runtime.GOMAXPROCS(processors)
	established := dial(t, s)
	defer established.Close()
	mustServe(t, established)
	clients := startCrowd(t, s, crowd)
	defer clients.End()
	clock := clockOf(t, w, established)
	alone, _ := sampled(t, f, clock, established)
	figures.alone = p99(alone)

	// The loop stands still until all have sent.
	release, held := make(chan struct{}), make(chan struct{})
	goOn := sync.OnceFunc(func() { close(release) })
	defer goOn()
	hold := func() { close(held); <-release }
	w.Hold.Store(&hold)
	waker := dial(t, s) // the previous turn may be the one that is held
	defer waker.Close()
	io.WriteString(waker, requestText("GET", "/depts/1500"))
	<-held
	clients.Poke()
	clients.Expect("sent")
	late := dial(t, s)
	defer late.Close()
	type firstAnswer struct {
		took  time.Duration
		other int64
		err   error
	}
	first := make(chan firstAnswer, 1)
	before, start := answers(f), time.Now()
	goOn()
	go func() { // ends with the answer, or when late is closed
		_, err := io.WriteString(late, requestText("GET", "/depts/1500"))
		if err == nil {
			_, err = readAnswer(bufio.NewReader(late), "GET")
		}
		first <- firstAnswer{time.Since(start), answers(f) - before, err}
	}()
	beside, others := sampled(t, f, clock, established)
	got := <-first
	if got.err != nil {
		t.Fatal(got.err)
	}
	figures.first = got.took
	t.Logf("the new connection was answered after %d other answers of %d", got.other, crowd*pipelined)
	if got.other > crowd*pipelined/10 {
		t.Errorf("a new connection was answered after %d of the crowd's %d answers, want at most a tenth", got.other, crowd*pipelined)
	}
	// The crowd was busy as long as it got answers after that.
	last := others[len(others)-1]
	for end := time.Now().Add(time.Second); last == others[len(others)-1] && time.Now().Before(end); time.Sleep(time.Millisecond) {
		last = answers(f) - int64(len(others))
	}
	figures.samples, _ = slices.BinarySearch(others, last)
	figures.beside = p99(beside[:figures.samples])
	return figures
}

// loopClock stands still while the thread of a loop waits for a processor that the system has
// given to another program.
type loopClock struct {
	t      *testing.T
	thread int
}

// clockOf returns the clock of the loop that serves c.
func clockOf(t *testing.T, w *turnwatch.Watch, c net.Conn) loopClock {
	t.Helper()
	thread := make(chan int, 1)
	tell := func() { thread <- syscall.Gettid() } // loops that are measured keep their thread
	w.Hold.Store(&tell)
	mustServe(t, c)
	return loopClock{t, <-thread}
}

// since returns how much time has passed for the loop since start, or since it has had its thread.
func (c loopClock) since(start time.Time) time.Duration {
	c.t.Helper()
	text, err := os.ReadFile(fmt.Sprintf("/proc/self/task/%d/schedstat", c.thread))
	if err != nil {
		c.t.Fatal(err)
	}
	var ran, waited time.Duration
	if _, err := fmt.Sscan(string(text), &ran, &waited); err != nil {
		c.t.Fatal(err)
	}
	return time.Since(start) - waited
}

// sampled sends a thousand requests, one every millisecond, and returns how long each answer
// took, counted from the planned time of its request, and how many answers others had received by
// then. While one takes long, the next ones wait, too, as those of independent clients would.
func sampled(t *testing.T, f *fixture, clock loopClock, c net.Conn) (waits []time.Duration, others []int64) {
	t.Helper()
	start := time.Now()
	planned := clock.since(start)
	for i := range int64(1000) {
		if early := planned - clock.since(start); early > 0 {
			time.Sleep(early)
			planned = clock.since(start) // a timer that is late says nothing about the server
		}
		mustServe(t, c)
		waits, others = append(waits, clock.since(start)-planned), append(others, answers(f)-i-1)
		planned += time.Millisecond
	}
	return waits, others
}

// p99 sorts waits. For less than a hundred it is the longest.
func p99(waits []time.Duration) time.Duration {
	if len(waits) == 0 {
		return 0
	}
	slices.Sort(waits)
	return waits[len(waits)*99/100]
}

// answers returns how many documents were answered.
func answers(f *fixture) (n int64) {
	f.service.EachStatus(func(status string, count int64) {
		if status == "200" {
			n = count
		}
	})
	return n
}

// TestTurnsOfUnreadAnswers: the turns of loops stay short next to 2,000 connections that
// pipeline and read nothing, including the turns that accept, survey and close them.
func TestTurnsOfUnreadAnswers(t *testing.T) {
	const hostile = 2000
	turnwatch.Within(t, func(t *testing.T, _ *turnwatch.Watch) {
		budget := loop.NewBudget(0)
		s := listen(t, newFixture(t, jsonOrigin), Config{ConnConfig: frontend.ConnConfig{Budget: budget, MaxConnections: hostile + 10}}, smallListeners(t)...)
		startChild(t, fmt.Sprintf("hostile %s %d", s.Addr(), hostile)).Expect("hostile")
		testkit.Eventually(t, 2*time.Minute, func() error {
			if is := budget.Stats(); is.Throttled == 0 || is.Closed == 0 || is.Used > is.Limit {
				return fmt.Errorf("the budget says %+v, want some throttled, some closed, and at most the limit used", is)
			}
			return nil
		})
		for range 20 {
			c := dialFrom(t, "127.0.0.3", s.Addr().String())
			mustServe(t, c)
			c.Close()
		}
	})
}
