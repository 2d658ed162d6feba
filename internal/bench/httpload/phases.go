package httpload

import (
	"context"
	"net"
	"net/http/httptrace"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// Opening records the time that opening connections takes, by phase, for those that succeeded. The
// zero value is ready to use. It is safe for concurrent use.
type Opening struct {
	DNS     load.Buckets // resolving a name; addresses and unix sockets have none
	Connect load.Buckets // connecting, once the address is known
	TLS     load.Buckets // the handshake
}

// connect opens a connection and records how long resolving the name and connecting take.
func (e *Endpoint) connect(ctx context.Context, d *net.Dialer, network string) (net.Conn, error) {
	if e.Opening == nil {
		return d.DialContext(ctx, network, e.Address)
	}
	// The hook is called by DialContext itself, before it tries the first address.
	began := time.Now()
	var resolved time.Time
	ctx = httptrace.WithClientTrace(ctx, &httptrace.ClientTrace{DNSDone: func(httptrace.DNSDoneInfo) { resolved = time.Now() }})
	conn, err := d.DialContext(ctx, network, e.Address)
	if err != nil {
		return nil, err
	}
	done := time.Now()
	if !resolved.IsZero() {
		e.Opening.DNS.Record(resolved.Sub(began))
		began = resolved
	}
	e.Opening.Connect.Record(done.Sub(began))
	return conn, nil
}

// A Phase is a part of the time that requests take.
type Phase struct {
	Name string // DNS, connect, TLS or first byte
	Took *load.Buckets
}

// FirstByte is the name of the phase from sending a request to the first byte of its response.
const FirstByte = "first byte"

// Phases returns the phases that have occurred: those of all connections, including the ones opened
// before the window, and the first byte of the requests in the window.
func (t *Target) Phases() (phases []Phase) {
	first := new(load.Buckets)
	for _, part := range t.firstByte {
		first.Merge(part)
	}
	for _, p := range []Phase{{"DNS", &t.opening.DNS}, {"connect", &t.opening.Connect}, {"TLS", &t.opening.TLS}, {FirstByte, first}} {
		if p.Took.Count() > 0 {
			phases = append(phases, p)
		}
	}
	return phases
}
