package loadproc

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
)

// For a server that allocates 500 objects per scrape and 3 per request, the figure must be 3.
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
