package rpc_test

import (
	"context"
	"slices"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// BenchmarkGrowth measures the first two seconds of a client of a server that answers in order: the mean and the worst
// number of calls per second, and the time until 12 connections are open for 16 callers. It evaluates the constants of
// growth.go. Run it with -benchtime=10x.
func BenchmarkGrowth(b *testing.B) {
	for _, row := range []struct {
		name string
		each int64 // one of each such number of calls is slow; 0 if none is
		slow time.Duration
	}{{"fast", 0, 0}, {"one of 100 takes 10 ms", 100, 10 * time.Millisecond}, {"each takes 1 ms", 1, time.Millisecond}} {
		b.Run(row.name, func(b *testing.B) {
			var calls atomic.Int64
			s := startStock(b, &stock{handle: func(c *stockCall) []byte {
				if n := calls.Add(1); row.each > 0 && n%row.each == 0 {
					time.Sleep(row.slow)
				}
				return add(b, c)
			}})
			var rates, opened []float64
			for b.Loop() {
				rate, after := grow(b, s)
				rates, opened = append(rates, rate), append(opened, after)
			}
			sum := 0.0
			for _, rate := range rates {
				sum += rate
			}
			slices.Sort(opened)
			b.ReportMetric(sum/float64(len(rates)), "calls/s")
			b.ReportMetric(slices.Min(rates), "least-calls/s")
			b.ReportMetric(opened[len(opened)/2], "s-median-until-12")
			b.ReportMetric(opened[len(opened)-1], "s-most-until-12")
		})
	}
}

// grow returns the calls per second in the first two seconds of a client, and the seconds until it had 12 connections,
// or 2 if it never had them.
func grow(b *testing.B, s *stock) (rate, after float64) {
	const life = 2 * time.Second
	client, err := rpc.NewClient(rpc.ClientConfig{Addr: s.addr, Transport: rpc.Framed})
	if err != nil {
		b.Fatal(err)
	}
	defer client.Close()
	c := calc.NewCalculatorClient(client)
	var all sync.WaitGroup
	var n atomic.Int64
	start := time.Now()
	for i := range int32(16) {
		all.Go(func() {
			for time.Since(start) < life {
				if sum, err := c.Add(context.Background(), i, 1); sum != i+1 || err != nil {
					b.Errorf("sum %d, %v", sum, err)
					return
				}
				n.Add(1)
			}
		})
	}
	after = life.Seconds()
	for time.Since(start) < life {
		time.Sleep(10 * time.Millisecond)
		if client.Stats().Connected >= 12 {
			after = time.Since(start).Seconds()
			break
		}
	}
	all.Wait()
	return float64(n.Load()) / time.Since(start).Seconds(), after
}
