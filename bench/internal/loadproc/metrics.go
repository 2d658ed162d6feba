package loadproc

import (
	"context"
	"fmt"

	"github.com/slipstream-go/slipstream/internal/bench/promtext"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Scrape returns the samples of the page /metrics at an address.
func Scrape(ctx context.Context, address string) (map[string]float64, error) {
	return promtext.Scrape(ctx, "http://"+address+"/metrics")
}

// allocationCounters reads the server's allocations. A scrape also allocates, a few thousand
// objects for a large page, which would be visible at low rates. Therefore the first reading is
// taken twice, and the difference is the cost of one scrape, which the second reading subtracts.
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
		// The first scrape of a page allocates its buffers, so its cost is not typical.
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

// pageCounters returns counters for metrics of a page under their own names.
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
