package httpload

import (
	"crypto/tls"
	"io"
	"net"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/internal/wire/http1"
)

// phasesOf returns how often each phase has occurred.
func phasesOf(t *Target) map[string]uint64 {
	all := map[string]uint64{}
	for _, p := range t.Phases() {
		all[p.Name] = p.Took.Count()
	}
	return all
}

// The phases of opening that occur are counted for each connection, including those opened before
// the window; the first byte is counted for each request of the window.
//
// mutant: httpload-first-byte-of-the-warm-up
// mutant: httpload-lookups-unseen
func TestPhasesThatOccur(t *testing.T) {
	handler := http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "hello") })
	plain, secure := httptest.NewServer(handler), httptest.NewTLSServer(handler)
	defer plain.Close()
	defer secure.Close()
	named := strings.Replace(plain.URL, "127.0.0.1", "localhost", 1)
	if _, err := net.DefaultResolver.LookupHost(t.Context(), "localhost"); err != nil {
		named = plain.URL // this machine cannot resolve its own name
	}
	for _, tc := range []struct {
		name                   string
		o                      Options
		dns, connect, tls, sum uint64 // if connections is 0, there is one for each request, including those of the warm-up
	}{
		{"address", Options{URL: plain.URL}, 0, 3, 0, 50},
		{"name", Options{URL: named}, 3, 3, 0, 50},
		{"TLS", Options{URL: secure.URL, TLS: &tls.Config{InsecureSkipVerify: true}}, 0, 3, 3, 50},
		{"fresh", Options{URL: plain.URL, Fresh: true}, 0, 0, 0, 50},
	} {
		t.Run(tc.name, func(t *testing.T) {
			target, err := New(tc.o)
			if err != nil {
				t.Fatal(err)
			}
			cfg := load.Config{Callers: 3, Duration: time.Minute, WarmUp: 20 * time.Millisecond, Total: int64(tc.sum), Counters: target.Counters()}
			r, err := load.Run(t.Context(), cfg, target)
			if err != nil || r.Completed != tc.sum || r.WarmUp.Completed == 0 {
				t.Fatalf("%v, %+v", err, r)
			}
			if tc.name == "name" && named == plain.URL {
				t.Skip("localhost cannot be resolved")
			}
			if tc.o.Fresh {
				tc.connect = r.Completed + r.WarmUp.Completed
			}
			got := phasesOf(target)
			if got["DNS"] != tc.dns || got["connect"] != tc.connect || got["TLS"] != tc.tls || got[FirstByte] != tc.sum {
				t.Errorf("%v, want %d DNS, %d connect, %d TLS, %d first byte", got, tc.dns, tc.connect, tc.tls, tc.sum)
			}
		})
	}
}

// The time of the first byte does not include the rest of the response.
//
// mutant: httpload-first-byte-is-the-last
func TestTheFirstByteIsNotTheLast(t *testing.T) {
	const before = 20 * time.Millisecond
	read := make(chan struct{})
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		time.Sleep(before)
		w.Header().Set("Content-Length", "5")
		w.(http.Flusher).Flush()
		<-read // the head
		time.Sleep(before)
		_, _ = io.WriteString(w, "hello")
	}))
	defer server.Close()
	target, err := New(Options{URL: server.URL})
	if err != nil {
		t.Fatal(err)
	}
	c, err := target.NewCaller(t.Context(), 0)
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var head time.Time
	target.callers[0].conn.OnHead = func(*http1.ResponseHead) error {
		head = time.Now()
		close(read)
		return nil
	}
	began := time.Now()
	if err := c.Do(t.Context()); err != nil {
		t.Fatal(err)
	}
	phases := target.Phases()
	if first := phases[len(phases)-1].Took.Max(); first < before || first > head.Sub(began) {
		t.Errorf("the first byte arrived after %v, the head after %v", first, head.Sub(began))
	}
}
