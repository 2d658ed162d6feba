package httpfront

import (
	"bufio"
	"fmt"
	"io"
	"net/http"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// When all slots of requests that wait for loads are taken, a connection may still have
// one, and its further misses are refused, in their order.
func TestCrowdOfLoads(t *testing.T) {
	eachLoop(t, func(t *testing.T, by way) {
		testkit.NoLeaks(t)
		open := make(chan struct{})
		f := newConfigured(t, gated(open), ServiceConfig{}, nil)
		s := listen(t, f, by.config(Config{}))
		s.front.waiting.Add(maxWaiting)
		c := dial(t, s)
		defer c.Close()
		text := "" // one write, so that one call of Data sees all three
		for i := range 3 {
			text += fmt.Sprintf("GET /depts/%d HTTP/1.1\r\nHost: h\r\n\r\n", gatedFrom+i)
		}
		io.WriteString(c, text)
		testkit.Eventually(t, patience, func() error {
			if n := s.front.waiting.Load(); n != maxWaiting+1 {
				return fmt.Errorf("%d requests wait, want %d", n, maxWaiting+1)
			}
			return nil
		})
		silent(t, c)
		close(open)
		r := bufio.NewReader(c)
		for i, want := range []int{http.StatusOK, http.StatusServiceUnavailable, http.StatusServiceUnavailable} {
			rsp, err := http.ReadResponse(r, nil)
			if err != nil {
				t.Fatal(err)
			}
			if _, err := io.Copy(io.Discard, rsp.Body); err != nil {
				t.Fatal(err)
			}
			if retry := rsp.Header.Get("Retry-After"); rsp.StatusCode != want || want != http.StatusOK && retry != "1" {
				t.Errorf("answer %d is %d, Retry-After %q, want %d", i, rsp.StatusCode, retry, want)
			}
		}
		s.front.waiting.Add(-maxWaiting)
		checkNothingWaits(t, s)
	})
}
