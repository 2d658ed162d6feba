package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// get returns the status, the Cache-Status and the body of a response.
func get(t *testing.T, url string) (status int, cacheStatus, body string) {
	t.Helper()
	request, err := http.NewRequestWithContext(t.Context(), http.MethodGet, url, nil)
	if err != nil {
		t.Fatal(err)
	}
	request.Close = true // an idle connection would be a leak
	response, err := http.DefaultClient.Do(request)
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	if err != nil {
		t.Fatal(err)
	}
	return response.StatusCode, response.Header.Get("Cache-Status"), string(text)
}

func TestEmbed(t *testing.T) {
	testkit.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "demo.db")
	if err := demo.Create(path, 1); err != nil {
		t.Fatal(err)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	base := "http://" + listener.Addr().String()
	ctx, stop := context.WithCancel(t.Context())
	defer stop()
	ended := make(chan error, 1)
	go func() { ended <- run(ctx, path, listener) }() // ends with ctx, waited for below
	testkit.Eventually(t, 10*time.Second, func() error {
		if status, how, body := get(t, base+"/api/depts/42"); status != http.StatusOK || how != "slipstream; hit" || !strings.HasPrefix(body, `{"deptno":42,`) {
			return fmt.Errorf("%d, %s, %s; expected department 42 from memory", status, how, body)
		}
		return nil
	})
	for page, want := range map[string]string{
		"/headcount/42":   " employees\n",
		"/headcount/4711": "404",
		"/headcount/x":    "expected",
		"/metrics":        "slipstream_hits_total",
	} {
		if _, _, body := get(t, base+page); !strings.Contains(body, want) {
			t.Errorf("%s: %s; expected %q", page, body, want)
		}
	}
	stop()
	if err := <-ended; err != nil {
		t.Error(err)
	}
}
