package httpfront

import (
	"bufio"
	"context"
	"io"
	"os"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
)

// TestEveryHitIsCounted: also by the cache, whether or not the cache was queried, requests are
// logged, or a coding was chosen.
func TestEveryHitIsCounted(t *testing.T) {
	for name, logged := range map[string]bool{"in sum": false, "logged": true} {
		t.Run(name, func(t *testing.T) {
			eachLoop(t, func(t *testing.T, by way) {
				config := ServiceConfig{Compression: []string{"gzip"}}
				if logged {
					log, err := requestlog.Open(requestlog.Config{Path: os.DevNull})
					if err != nil {
						t.Fatal(err)
					}
					t.Cleanup(func() { log.Close(context.Background()) })
					config.Requests = log
				}
				f := newConfigured(t, jsonOrigin, config, nil)
				s := listen(t, f, by.config(Config{}))
				c := dial(t, s)
				defer c.Close()
				r := bufio.NewReader(c)
				const rounds = 100
				requests := requestText("GET", "/depts/2000") + requestText("GET", "/depts/2000", "Accept-Encoding", "gzip") + requestText("GET", "/orders/x/3")
				for range rounds {
					io.WriteString(c, requests)
					for range strings.Count(requests, "GET") {
						if _, err := readAnswer(r, "GET"); err != nil {
							t.Fatal(err)
						}
					}
				}
				depts := f.cache.Stats().Resources[0]
				if n := depts.Hits + depts.Misses; n != 2*rounds {
					t.Errorf("the cache counted %d hits and %d misses, want %d together", depts.Hits, depts.Misses, 2*rounds)
				}
			})
		})
	}
}
