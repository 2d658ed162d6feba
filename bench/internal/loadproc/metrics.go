package loadproc

import (
	"bufio"
	"context"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

var metricsClient = &http.Client{Timeout: 10 * time.Second}

// Scrape returns the samples of a Prometheus text page that have no labels, and
// for each name with labels the sum over them.
func Scrape(ctx context.Context, address string) (map[string]float64, error) {
	req, err := http.NewRequestWithContext(ctx, http.MethodGet, "http://"+address+"/metrics", nil)
	if err != nil {
		return nil, err
	}
	resp, err := metricsClient.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusOK {
		return nil, fmt.Errorf("metrics of %s: %s", address, resp.Status)
	}
	return parseMetrics(resp.Body)
}

func parseMetrics(r io.Reader) (map[string]float64, error) {
	values := map[string]float64{}
	lines := bufio.NewScanner(r)
	for lines.Scan() {
		line := lines.Text()
		if line == "" || line[0] == '#' {
			continue
		}
		name, rest := line, ""
		if brace := strings.IndexByte(line, '{'); brace >= 0 {
			closing := strings.LastIndexByte(line, '}')
			if closing < brace {
				return nil, fmt.Errorf("metrics: line %q, want a closing brace", line)
			}
			name, rest = line[:brace], line[closing+1:]
		} else if blank := strings.IndexByte(line, ' '); blank >= 0 {
			name, rest = line[:blank], line[blank:]
		}
		fields := strings.Fields(rest)
		if len(fields) == 0 {
			return nil, fmt.Errorf("metrics: line %q, want a name and a number", line)
		}
		v, err := strconv.ParseFloat(fields[0], 64)
		if err != nil {
			return nil, fmt.Errorf("metrics: line %q: %w", line, err)
		}
		values[name] += v
	}
	return values, lines.Err()
}

// allocationCounters reads the server's allocations. A scrape allocates too, a
// few thousand objects for a large page, which would show at low rates: the first
// reading is therefore taken twice, and what lies between the two is the cost of
// one scrape, which the second reading subtracts.
func allocationCounters(address string) []load.Counter {
	names := map[string]string{Mallocs: "go_memstats_mallocs_total", AllocatedBytes: "go_memstats_alloc_bytes_total"}
	var page map[string]float64 // shared by the counters of one reading
	var scrapeCost map[string]float64
	read := func(ctx context.Context) error {
		var err error
		if page != nil {
			return nil
		}
		if scrapeCost != nil { // the second reading
			page, err = Scrape(ctx, address)
			for name := range page {
				page[name] -= scrapeCost[name]
			}
			return err
		}
		// The first scrape of a page makes its buffers: it is not the measure.
		if _, err = Scrape(ctx, address); err != nil {
			return err
		}
		first, err := Scrape(ctx, address)
		if err != nil {
			return err
		}
		page, err = Scrape(ctx, address)
		if err != nil {
			return err
		}
		scrapeCost = map[string]float64{}
		for name, v := range page {
			scrapeCost[name] = v - first[name]
		}
		return nil
	}
	var counters []load.Counter
	left := 0
	for counter, metric := range names {
		counters = append(counters, load.Counter{Name: counter, Read: func(ctx context.Context) (float64, error) {
			if left == 0 {
				page, left = nil, len(names)
			}
			left--
			if err := read(ctx); err != nil {
				return 0, err
			}
			v, ok := page[metric]
			if !ok {
				return 0, fmt.Errorf("metrics of %s: no %s", address, metric)
			}
			return v, nil
		}})
	}
	return counters
}

// pageCounters count figures of a metrics page under their own names.
func pageCounters(address string, names []string) []load.Counter {
	var counters []load.Counter
	for _, name := range names {
		counters = append(counters, load.Counter{Name: name, Read: func(ctx context.Context) (float64, error) {
			page, err := Scrape(ctx, address)
			if err != nil {
				return 0, err
			}
			v, ok := page[name]
			if !ok {
				return 0, fmt.Errorf("metrics of %s: no %s", address, name)
			}
			return v, nil
		}})
	}
	return counters
}
