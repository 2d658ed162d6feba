//go:build unix

package redis_test

import (
	"context"
	"net"
	"slices"
	"testing"
	"time"
)

// delays is a list of durations of the same kind.
type delays []time.Duration

// at returns the delay that a share of p of all delays does not exceed.
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
	t.Logf("%s: p50 %v, p99 %v, max %v of %d", what, d.at(0.5), d.at(0.99), d.at(1), len(d))
}

// lateness measures how late goroutines run on this machine, which other tests and builds use, too:
// guarantees about time can be kept only with that precision. The returned function stops the
// measurement and returns the delays beyond what was requested.
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

// opaque hides the type of a connection, as TLS does. Then the client cannot write without
// blocking, and a separate goroutine writes.
func opaque(ctx context.Context, network, addr string) (net.Conn, error) {
	conn, err := new(net.Dialer).DialContext(ctx, network, addr)
	if err != nil {
		return nil, err
	}
	return struct{ net.Conn }{conn}, nil
}
