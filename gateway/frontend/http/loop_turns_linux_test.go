//go:build !race

package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"slices"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
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

// crowd is how many connections pipeline without reading. Each may hold 256 KiB.
const crowd = 1000

// TestPipelinesOfACrowd: a thousand connections have sent 250 requests each and do not read.
// A new connection is answered after a small part of that work, and one that is established
// as soon.
func TestPipelinesOfACrowd(t *testing.T) {
	const requests = 250
	turnwatch.Within(t, func(t *testing.T, w *turnwatch.Watch) {
		testkit.NoLeaks(t)
		f := newConfigured(t, jsonOrigin, ServiceConfig{}, nil)
		processors := runtime.GOMAXPROCS(1) // one loop
		s := listen(t, f, Config{})
		runtime.GOMAXPROCS(processors)
		get := requestText("GET", "/depts/1500")
		answer := func(c net.Conn) {
			t.Helper()
			answer, err := readAnswer(bufio.NewReaderSize(c, 64<<10), "GET")
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, answer.Body); err != nil || answer.StatusCode != http.StatusOK {
				t.Fatalf("%d, %v", answer.StatusCode, err)
			}
		}
		answered := func(c net.Conn) {
			t.Helper()
			io.WriteString(c, get)
			answer(c)
		}
		established := dial(t, s)
		defer established.Close()
		answered(established)
		waits := func() (p50, p99 time.Duration) {
			var all []time.Duration
			for range 200 {
				start := time.Now()
				answered(established)
				all = append(all, time.Since(start))
			}
			slices.Sort(all)
			return all[100], all[198]
		}
		p50, p99 := waits()
		t.Logf("an established connection that is alone: p50 %v, p99 %v", p50, p99)

		var conns []net.Conn
		defer func() {
			for _, c := range conns {
				c.Close()
			}
		}()
		small := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error {
			return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4096) })
		}}
		for range crowd {
			c, err := small.Dial("tcp", s.Addr().String())
			if err != nil {
				t.Fatal(err)
			}
			conns = append(conns, c)
			answered(c)
		}
		// The loop stands still until all have sent.
		release, held := make(chan struct{}), make(chan struct{})
		goOn := sync.OnceFunc(func() { close(release) })
		defer goOn()
		hold := func() { close(held); <-release }
		w.Hold.Store(&hold)
		io.WriteString(established, get) // the turn before may be the one that is held
		<-held
		pipeline := strings.Repeat(get, requests)
		for _, c := range conns {
			if _, err := io.WriteString(c, pipeline); err != nil {
				t.Fatal(err)
			}
		}
		late := dial(t, s)
		defer late.Close()
		before, start := answers(f), time.Now()
		goOn()
		answered(late)
		took, between := time.Since(start), answers(f)-before
		t.Logf("the new connection was answered after %v and %d other answers of %d", took, between, crowd*requests)
		if between > crowd*requests/10 {
			t.Errorf("a new connection was answered after %d of the crowd's %d answers, want at most a tenth", between, crowd*requests)
		}
		answer(established)
		// What a connection that is established waits for is a round of the loop.
		p50, p99 = waits()
		t.Logf("an established one: p50 %v, p99 %v", p50, p99)
	})
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
