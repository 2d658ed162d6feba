//go:build unix

package httpfront

import (
	"bufio"
	"io"
	"net"
	"path/filepath"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// TestUnixProxies: a proxy that connects over a unix socket names its clients, if the
// configuration trusts it.
func TestUnixProxies(t *testing.T) {
	eachServer(t, func(t *testing.T, by way) {
		for _, trust := range []bool{true, false} {
			testkit.NoLeaks(t)
			f := newConfigured(t, jsonOrigin, ServiceConfig{RequestConfig: frontend.RequestConfig{ClientLimit: limit.New(limit.Config{Rate: 0.001, Burst: 5})}}, nil)
			// A load would count as well.
			if _, err := f.cache.Get(t.Context(), cache.Key{ID: "300"}, f.cache.Now()); err != nil {
				t.Fatal(err)
			}
			path := filepath.Join(t.TempDir(), "s")
			l, err := net.Listen("unix", path)
			if err != nil {
				t.Fatal(err)
			}
			listen(t, f, by.config(Config{TrustUnix: trust}), l)
			for i := range 10 {
				raw, err := net.Dial("unix", path)
				if err != nil {
					t.Fatal(err)
				}
				client, want := "203.0.113.1", 200
				if i == 9 {
					client = "203.0.113.2"
				}
				if i >= 5 && (i < 9 || !trust) {
					want = 429
				}
				io.WriteString(raw, requestText("GET", "/depts/300", "X-Forwarded-For", client))
				answer, err := readAnswer(bufio.NewReader(raw), "GET")
				if err != nil || answer.StatusCode != want {
					t.Errorf("request %d, trusted %v: %v, %v, want %d", i, trust, answer, err, want)
				}
				raw.Close()
			}
		}
	})
}
