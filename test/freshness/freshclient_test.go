//go:build unix

package freshness

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/redis"
)

// documents is the access of a reader to a gateway: over one of the frontends, on its own
// connection.
type documents interface {
	// ask requests an HTTP path. It returns the HTTP status (0 if there was no answer about the
	// documents), the body of a 200, and whether the answer is known to have come from the cache.
	ask(path string) (status int, body []byte, hit bool)
	close()
}

type overHTTP struct {
	url    string
	client *http.Client
	disk   *atomic.Int64 // counts answers from disk; may be nil
}

func newOverHTTP(url string) overHTTP {
	return overHTTP{url: url, client: &http.Client{Timeout: 10 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}}
}

func (o overHTTP) close() { o.client.CloseIdleConnections() }

func (o overHTTP) ask(path string) (status int, body []byte, hit bool) {
	answer, err := o.client.Get(o.url + path)
	if err != nil {
		return 0, nil, false
	}
	defer answer.Body.Close()
	if body, err = io.ReadAll(answer.Body); err != nil {
		return 0, nil, false // the process was killed
	}
	source := answer.Header.Get("Cache-Status")
	if o.disk != nil && strings.Contains(source, "detail=disk") {
		o.disk.Add(1)
	}
	return answer.StatusCode, body, strings.Contains(source, "; hit")
}

// overRedis requests one document with GET and several with MGET.
type overRedis struct{ client *redis.Client }

// newOverRedis connects to a running gateway. Requests made while it is stopped wait for their
// answers.
func newOverRedis(t *testing.T, port int, version int) overRedis {
	t.Helper()
	c, err := redis.Connect(t.Context(), redis.Options{Addr: fmt.Sprintf("127.0.0.1:%d", port), Protocol: version,
		Timeout: 10 * time.Second, StallTimeout: 10 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	return overRedis{c}
}

// close drops what is in flight; nothing waits for it anymore.
func (o overRedis) close() { _ = o.client.Close() }

func (o overRedis) ask(path string) (status int, body []byte, hit bool) {
	ctx := context.Background() // bounded by the client's Timeout
	resource, query, several := strings.Cut(path[1:], "?")
	if !several {
		text, found, err := o.client.Get(ctx, strings.ReplaceAll(resource, "/", ":"))
		switch {
		case err != nil:
			return 0, nil, false
		case !found:
			return http.StatusNotFound, nil, false
		}
		return http.StatusOK, []byte(text), false
	}
	keys := strings.Split(query, "&")
	for i, k := range keys {
		keys[i] = resource + ":" + strings.ReplaceAll(strings.TrimPrefix(k, "key="), "/", ":")
	}
	items, err := o.client.MGet(ctx, keys...)
	if err != nil {
		return 0, nil, false
	}
	parts := make([]string, len(items))
	for i, item := range items {
		parts[i] = "null"
		if item.Found {
			parts[i] = item.Value
		}
	}
	return http.StatusOK, []byte("[" + strings.Join(parts, ",") + "]"), false
}
