//go:build unix

package redis_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"
)

// delays are how long something took, many times.
type delays []time.Duration

// at returns the delay that a share of p of all does not exceed.
func (d delays) at(p float64) time.Duration {
	if len(d) == 0 {
		return 0
	}
	slices.Sort(d)
	return d[min(int(p*float64(len(d))), len(d)-1)]
}

// log prints the distribution.
func (d delays) log(t testing.TB, what string) {
	t.Helper()
	t.Logf("%s: p50 %v, p99 %v, most %v of %d", what, d.at(0.5), d.at(0.99), d.at(1), len(d))
}

// lateness measures how late goroutines run on this machine, which tests and
// builds share: guarantees about time can be kept only that well. The returned
// function stops the measurement and returns the delays beyond what was requested.
func lateness() func() delays {
	stop, out := make(chan struct{}), make(chan delays)
	go func() { // ends when stop is closed; the returned function waits
		var d delays
		for {
			began := time.Now()
			select {
			case <-stop:
				out <- d
				return
			case <-time.After(2 * time.Millisecond):
				d = append(d, time.Since(began)-2*time.Millisecond)
			}
		}
	}()
	return func() delays {
		close(stop)
		return <-out
	}
}

// opaque hides what a connection is, as TLS does: then the client cannot write
// without blocking, and a separate goroutine does.
func opaque(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{conn}, nil
}
