package admin

import (
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"
)

// TestHeadIsBounded: a head of more than 16 KiB, and the 4 KiB that net/http adds, is refused.
func TestHeadIsBounded(t *testing.T) {
	s, _, _ := newServer()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	served := make(chan error, 1)
	go func() { served <- s.Serve(l) }() // ends with Shutdown, and is waited for below
	defer func() {
		if err := s.Shutdown(t.Context()); err != nil {
			t.Error(err)
		}
		if err := <-served; err != nil {
			t.Error(err)
		}
	}()
	client := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}, Timeout: 20 * time.Second}
	for size, want := range map[int]int{maxHeader / 2: http.StatusOK, maxHeader + 8<<10: http.StatusRequestHeaderFieldsTooLarge} {
		r, err := http.NewRequestWithContext(t.Context(), http.MethodGet, "http://"+l.Addr().String()+"/live", nil)
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("X", strings.Repeat("x", size))
		answer, err := client.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		_, _ = io.Copy(io.Discard, answer.Body)
		answer.Body.Close()
		if answer.StatusCode != want {
			t.Errorf("a head of %d bytes: %d, want %d", size, answer.StatusCode, want)
		}
	}
}
