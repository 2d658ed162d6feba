package loadproc

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
)

func TestParseMetrics(t *testing.T) {
	got, err := parseMetrics(strings.NewReader("# HELP a b\na 1\nb{x=\"y } z\"} 2\nb{x=\"2\"} 3e2 1700000000\n\n"))
	if err != nil || got["a"] != 1 || got["b"] != 302 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"a\n", "a b\n", "a{x 1\n"} {
		if _, err := parseMetrics(strings.NewReader(bad)); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}

// A server that allocates 500 objects a scrape and 3 a request must read as 3.
func TestScrapesDoNotCount(t *testing.T) {
	mallocs := 10_000
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, _ *http.Request) {
		mallocs += 500
		fmt.Fprintf(w, "go_memstats_mallocs_total %d\ngo_memstats_alloc_bytes_total %d\n", mallocs, 16*mallocs)
	}))
	defer server.Close()
	counters := allocationCounters(server.Listener.Addr().String())
	before := map[string]float64{}
	for _, c := range counters {
		v, err := c.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		before[c.Name] = v
	}
	mallocs += 3 * 100
	for _, c := range counters {
		v, err := c.Read(context.Background())
		if err != nil {
			t.Fatal(err)
		}
		want := 300.0
		if c.Name == AllocatedBytes {
			want *= 16
		}
		if v-before[c.Name] != want {
			t.Errorf("%s grew by %v, want %v", c.Name, v-before[c.Name], want)
		}
	}
}
