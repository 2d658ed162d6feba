// Under the race detector sync.Pool drops objects on purpose.

//go:build !race

package httpfront

import (
	"bufio"
	"bytes"
	"context"
	"io"
	"os"
	"runtime"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
)

// TestLoopHitAllocations: a hit makes no garbage between read(2) and writev(2), with
// everything that examines each request switched on.
func TestLoopHitAllocations(t *testing.T) {
	plain := requestText("GET", "/depts/300", "User-Agent", "a client/1.0", "Accept", "*/*")
	for _, test := range []struct {
		name    string
		request string
		config  func(t *testing.T) ServiceConfig
	}{
		{"plain", plain, func(*testing.T) ServiceConfig { return ServiceConfig{} }},
		{"HEAD", strings.Replace(plain, "GET", "HEAD", 1), func(*testing.T) ServiceConfig { return ServiceConfig{} }},
		{"gzip", requestText("GET", "/depts/2000", "Accept-Encoding", "gzip, deflate, br"), func(*testing.T) ServiceConfig { return ServiceConfig{Compression: []string{"zstd", "gzip"}} }},
		{"large", requestText("GET", "/depts/20000"), func(*testing.T) ServiceConfig { return ServiceConfig{} }},
		{"API key, limits, log", requestText("GET", "/blobs/10", "X-API-Key", webKey, "User-Agent", "a client/1.0", "Referer", "https://a/"), func(t *testing.T) ServiceConfig {
			log, err := requestlog.Open(requestlog.Config{Path: os.DevNull})
			if err != nil {
				t.Fatal(err)
			}
			t.Cleanup(func() { log.Close(context.Background()) })
			return ServiceConfig{
				RequestConfig: frontend.RequestConfig{Gate: newGate(t), Requests: log, ClientLimit: limit.New(limit.Config{Rate: 1e9, Burst: 1e6}), CallerLimit: limit.New(limit.Config{Rate: 1e9, Burst: 1e6})},
				CORS:          CORS{Origins: []string{"https://app.example"}},
			}
		}},
		{"Host", plain, func(*testing.T) ServiceConfig {
			return ServiceConfig{Hosts: Hosts{Names: []string{"h"}, Loopback: true}}
		}},
		{"a forwarded client", requestText("GET", "/depts/300", "X-Forwarded-For", "198.51.100.7, 127.0.0.1"), func(*testing.T) ServiceConfig {
			return ServiceConfig{RequestConfig: frontend.RequestConfig{ClientLimit: limit.New(limit.Config{Rate: 1e9, Burst: 1e6})}}
		}},
	} {
		t.Run(test.name, func(t *testing.T) {
			eachLoop(t, func(t *testing.T, by way) {
				f := newConfigured(t, jsonOrigin, test.config(t), func(r []frontend.Resource) { r[2].Access = &access.Rule{Keys: []string{"web"}} })
				s := listen(t, f, by.config(Config{ConnConfig: frontend.ConnConfig{TrustedProxies: prefixes("127.0.0.0/8")}}))
				if n := allocationsOf(t, s, test.request); n > 0.05 {
					t.Errorf("%.3f allocations a hit, want less than 0.05", n)
				}
			})
		})
	}
}

// allocationsOf returns the allocations of the whole process per answer to the request.
func allocationsOf(t *testing.T, s *Server, request string) float64 {
	t.Helper()
	const batch, batches = 10, 1000
	c := dial(t, s)
	defer c.Close()
	c.SetDeadline(time.Now().Add(time.Minute))
	text := []byte(strings.Repeat(request, batch))
	method, _, _ := strings.Cut(request, " ")
	size := 0
	for range 3 { // loads it, compresses it, and is a hit like all that follow
		io.WriteString(c, request)
		var answer bytes.Buffer
		if _, err := readAnswer(bufio.NewReader(io.TeeReader(c, &answer)), method); err != nil {
			t.Fatal(err)
		}
		size = answer.Len()
	}
	buffer := make([]byte, size*batch)
	round := func() {
		if _, err := c.Write(text); err != nil {
			t.Fatal(err)
		}
		if _, err := io.ReadFull(c, buffer); err != nil {
			t.Fatal(err)
		}
	}
	for range 10 {
		round()
	}
	if got := bytes.Count(buffer, []byte("HTTP/1.1 200 OK")); got != batch || !bytes.Contains(buffer, []byte("slipstream; hit")) {
		t.Fatalf("%d answers of status 200, want %d hits: %.300q", got, batch, buffer)
	}
	var before, after runtime.MemStats
	least := 1e9 // of three: the runtime and other tests' leftovers allocate now and then
	for range 3 {
		runtime.ReadMemStats(&before)
		for range batches / 3 {
			round()
		}
		runtime.ReadMemStats(&after)
		least = min(least, float64(after.Mallocs-before.Mallocs)/(batches/3*batch))
	}
	return least
}
