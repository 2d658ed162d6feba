//go:build unix && !race

package tarantool_test

import (
	"context"
	"fmt"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/tarantool"
)

// BenchmarkNeighbour measures a lone caller's Get while another client has 16 pairs of goroutines
// with 1,024 futures each, at a server with default settings, with and without a window: the
// caller's p50 and p99, the number of gets of the other client in that time, and how often the
// server stopped reading. docs/decisions/0013 has the results.
func BenchmarkNeighbour(b *testing.B) {
	for _, window := range []int{0, 128, 512, 2048, 4096, 8192} {
		b.Run(fmt.Sprint("window=", window), func(b *testing.B) {
			s := testkit.StartTarantool(b, setup)
			greedy := tarantool.SpaceOf[nameless](connect(b, tarantool.Options{Addr: s.Addr, WaitWhenFull: true, Window: window}), "users")
			lone := tarantool.SpaceOf[nameless](connect(b, tarantool.Options{Addr: s.Addr}), "users")
			ctx, cancel := context.WithCancel(context.Background())
			done := make(chan int)
			const pairs = 16
			for range pairs {
				go func() { done <- getAhead(b, ctx, greedy) }()
			}
			time.Sleep(200 * time.Millisecond)
			b.ResetTimer()
			began := time.Now()
			took := make([]time.Duration, 0, b.N)
			var u nameless
			for i := range b.N {
				at := time.Now()
				if found, err := lone.Get(context.Background(), &u, tarantool.Int(1+i%100)); !found || err != nil {
					b.Fatal(found, err)
				}
				took = append(took, time.Since(at))
			}
			whole := time.Since(began)
			b.StopTimer()
			cancel()
			others := 0
			for range pairs {
				others += <-done
			}
			slices.Sort(took)
			b.ReportMetric(float64(took[len(took)/2].Microseconds()), "p50-us")
			b.ReportMetric(float64(took[len(took)*99/100].Microseconds()), "p99-us")
			b.ReportMetric(float64(others)/(whole+200*time.Millisecond).Seconds(), "others/s")
			b.ReportMetric(float64(stopsInLog(s.Log())), "stops")
		})
	}
}

// getAhead gets tuples with 1,024 futures at a time until ctx ends, and returns the number of gets.
func getAhead(b *testing.B, ctx context.Context, users *tarantool.Space[nameless]) (n int) {
	futures := make(chan tarantool.TupleFuture[nameless], 1024)
	go func() {
		defer close(futures)
		for i := 0; ctx.Err() == nil; i++ {
			futures <- users.StartGet(context.Background(), tarantool.Int(1+i%100))
		}
	}()
	var u nameless
	for f := range futures {
		if found, err := f.Get(&u); !found || err != nil {
			b.Errorf("%t, %v", found, err)
		}
		n++
	}
	return n
}

var suppressed = regexp.MustCompile(`(\d+) messages suppressed`)

// stopsInLog returns how often the server stopped reading a connection. The server logs some of
// these events and counts the others.
func stopsInLog(log string) int {
	n := strings.Count(log, "stopping input on connection")
	for _, match := range suppressed.FindAllStringSubmatch(log, -1) {
		more, _ := strconv.Atoi(match[1])
		n += more
	}
	return n
}
