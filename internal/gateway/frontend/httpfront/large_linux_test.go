package httpfront

import (
	"bufio"
	"bytes"
	"errors"
	"fmt"
	"io"
	"net/http"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A hundred clients of one address request large answers and never read one. Memory stays
// within its bound, they are closed, and a client of another address gets its documents,
// including large ones.
func TestClientsThatNeverRead(t *testing.T) { eachServer(t, testClientsThatNeverRead) }

func testClientsThatNeverRead(t *testing.T, by way) {
	const size, clients = 1 << 20, 100
	body := append(append([]byte(`"`), bytes.Repeat([]byte("x"), size-2)...), '"')
	f := newFixture(t, func(_ ctx, _ cache.ResourceID, id string) ([]byte, error) {
		if id == "1" {
			return []byte("1"), nil
		}
		return bytes.Clone(body), nil
	})
	const pending = 64 << 20
	s := listen(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{StallTimeout: time.Hour, Large: loop.NewLargeBudget(pending)}}))
	heap := func() int64 {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return int64(m.HeapInuse)
	}
	before := heap()
	for i := range clients {
		c := dialFrom(t, "127.0.0.66", s.Addr().String())
		defer c.Close()
		// Sixteen documents of one MiB, different ones for each client.
		var target strings.Builder
		for k := range 16 {
			fmt.Fprintf(&target, "&key=%d", 1000+i*16+k)
		}
		fmt.Fprintf(c, "GET /depts?%s HTTP/1.1\r\nHost: h\r\n\r\n", target.String()[1:])
	}
	honest := dialFrom(t, "127.0.0.3", s.Addr().String())
	defer honest.Close()
	r := bufio.NewReader(honest)
	ask := func(target string) error {
		honest.SetDeadline(time.Now().Add(patience))
		io.WriteString(honest, requestText("GET", target))
		a, err := readAnswer(r, "GET")
		if err != nil {
			t.Fatalf("%s: %v", target, err) // it was closed
		}
		if a.StatusCode != http.StatusOK {
			return fmt.Errorf("%s: status %d", target, a.StatusCode)
		}
		return nil
	}
	worst, closed := int64(0), uint64(0)
	testkit.Eventually(t, 30*time.Second, func() error {
		worst = max(worst, heap()-before)
		if err := ask("/depts/1"); err != nil {
			t.Fatal(err) // small answers are not refused
		}
		st, _ := s.EngineStats()
		if closed = st.Closes["large"]; closed == 0 {
			return errors.New("no client was closed for the answers that it does not read")
		}
		return nil
	})
	for i := range 20 {
		// It may be refused until the clients that owe most are closed.
		testkit.Eventually(t, 30*time.Second, func() error { return ask(fmt.Sprint("/depts/", 100+i)) })
		worst = max(worst, heap()-before)
	}
	// The clients request 1,600 MiB. In addition to the pending answers, memory holds what
	// is being loaded (64 MiB), the cache (16 MiB), and copies of either that have not been
	// released yet: 80 to 434 MiB were seen on two busy cores.
	if limit := int64(pending*3/2 + 8*maxLoading); worst > limit {
		t.Errorf("the heap grew by %d MiB, want at most %d", worst>>20, limit>>20)
	}
	t.Logf("the heap grew by %d MiB at most, %d clients were closed", worst>>20, closed)
}
