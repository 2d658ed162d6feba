package foreign

import (
	"encoding/csv"
	"fmt"
	"strconv"
	"strings"
	"time"
)

// ParseRedisBenchmark returns a parser of the output of redis-benchmark with --csv for one test of
// n requests. The program exits with an error at the first error reply, but accepts missing values.
func ParseRedisBenchmark(n uint64) func(string) (Run, error) {
	return func(output string) (Run, error) {
		rows, err := csv.NewReader(strings.NewReader(output)).ReadAll()
		if err != nil {
			return Run{}, fmt.Errorf("output %.200q: %w", output, err)
		}
		if len(rows) != 2 {
			return Run{}, fmt.Errorf("output %.200q has %d lines, want a head and one test", output, len(rows))
		}
		figure := func(name string) (float64, error) {
			for i, head := range rows[0] {
				if head == name {
					v, err := strconv.ParseFloat(rows[1][i], 64)
					if err != nil {
						return 0, fmt.Errorf("column %s: %w", name, err)
					}
					return v, nil
				}
			}
			return 0, fmt.Errorf("output %.200q has no column %s", output, name)
		}
		r := Run{Completed: n}
		rate, err := figure("rps")
		if err != nil {
			return r, err
		}
		if !(rate > 0) {
			return r, fmt.Errorf("%v requests a second, want some", rate)
		}
		r.Elapsed = time.Duration(float64(n) / rate * float64(time.Second))
		p50, err := figure("p50_latency_ms")
		if err != nil {
			return r, err
		}
		p99, err := figure("p99_latency_ms")
		r.P50, r.P99 = milliseconds(p50), milliseconds(p99)
		return r, err
	}
}

func milliseconds(v float64) time.Duration { return time.Duration(v * float64(time.Millisecond)) }
