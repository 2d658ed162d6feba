package postgres

import (
	"context"
	"errors"
	"net"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"
	"github.com/jackc/pgx/v5/pgxpool"
)

// This file is about connection URLs with several hosts. The driver tries them
// one after the other. A host that is down does not answer at all, and it may well
// be the first one: then each poll would run out of time before it reached the
// second.

const (
	// headStart is how long a host of the URL may take before the next one is
	// tried in parallel. A server nearby answers within 10 ms, and the stream
	// dials every 200 ms.
	headStart = 50 * time.Millisecond
	// hostTimeout is how long connections of loads try one of several hosts, if
	// the URL does not set it: below the limit of a load.
	hostTimeout = 2 * time.Second
)

// hostConfigs splits a configuration into one for each host, in the order of the
// URL. One host may have several entries, with TLS and without.
func hostConfigs(cfg *pgx.ConnConfig) []*pgx.ConnConfig {
	entries := append([]*pgconn.FallbackConfig{{Host: cfg.Host, Port: cfg.Port, TLSConfig: cfg.TLSConfig}}, cfg.Fallbacks...)
	var all []*pgx.ConnConfig
	for _, e := range entries {
		if n := len(all); n > 0 && all[n-1].Host == e.Host && all[n-1].Port == e.Port {
			all[n-1].Fallbacks = append(all[n-1].Fallbacks, e)
			continue
		}
		one := cfg.Copy()
		one.Host, one.Port, one.TLSConfig, one.Fallbacks = e.Host, e.Port, e.TLSConfig, nil
		all = append(all, one)
	}
	return all
}

// dial connects to the first host that satisfies the configuration. It returns
// when no attempt is in progress.
func (c *connector) dial(ctx context.Context, cfg *pgx.ConnConfig) (*pgx.Conn, error) {
	if !c.several {
		return pgx.ConnectConfig(ctx, cfg)
	}
	type attempt struct {
		cfg  *pgx.ConnConfig
		conn *pgx.Conn
		err  error
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	waiting, running := hostConfigs(cfg), 0
	attempts := make(chan attempt)
	timer := time.NewTimer(headStart)
	defer timer.Stop()
	start := func() {
		if len(waiting) == 0 {
			return
		}
		one := waiting[0]
		waiting = waiting[1:]
		running++
		timer.Reset(headStart)
		// Ends with ctx at the latest; the loop below takes what it sends.
		go func() {
			conn, err := pgx.ConnectConfig(ctx, one)
			attempts <- attempt{one, conn, err}
		}()
	}
	start()
	var found *pgx.Conn
	var errs []error
	for running > 0 {
		select {
		case <-timer.C:
			if found == nil {
				start()
			}
		case a := <-attempts:
			running--
			switch {
			case a.err != nil:
				errs = append(errs, a.err)
				if found == nil {
					start()
				}
			case found != nil:
				_ = a.conn.Close(ctx) // ctx is done: it is closed without a message
			default:
				found = a.conn
				c.reached.Store(a.cfg)
				cancel() // ends the others
			}
		}
	}
	if found == nil {
		return nil, errors.Join(errs...)
	}
	return found, nil
}

// prefer puts a host first, so that a connection need not wait for the silence of
// another. Nil changes nothing.
func (c *connector) prefer(cfg, last *pgx.ConnConfig) {
	if last == nil {
		return
	}
	hosts := hostConfigs(cfg)
	at := slices.IndexFunc(hosts, func(h *pgx.ConnConfig) bool { return h.Host == last.Host && h.Port == last.Port })
	if at < 0 {
		return
	}
	hosts = slices.Concat(hosts[at:at+1], hosts[:at], hosts[at+1:])
	cfg.Host, cfg.Port, cfg.TLSConfig, cfg.Fallbacks = hosts[0].Host, hosts[0].Port, hosts[0].TLSConfig, hosts[0].Fallbacks
	for _, h := range hosts[1:] {
		cfg.Fallbacks = append(cfg.Fallbacks, &pgconn.FallbackConfig{Host: h.Host, Port: h.Port, TLSConfig: h.TLSConfig})
		cfg.Fallbacks = append(cfg.Fallbacks, h.Fallbacks...)
	}
}

// Loads refuse an abandoned timeline as soon as the watcher of the hosts has seen a
// higher one, but on a machine that is short of CPU time it sees that too late. So a load
// trusts its connection only if the stream has vouched recently that no other host
// accepts writes, or if the connection itself is young.

// trustChecks is the number of CheckIntervals for which the stream, or a dial, vouches
// for loads: at most half of the shortest promise.
const trustChecks = 4

// LoadLag returns how old the data that a load reads may be when the load begins, for
// [cache.Config]: zero unless the URL has several hosts. Of these, the one that the
// load reads may have stopped being the primary that long ago without the stream
// having noticed.
func (cfg Config) LoadLag() time.Duration {
	c, err := newConnector(cfg.URL, 0)
	if err != nil || !c.several { // Open reports a wrong URL
		return 0
	}
	return trustChecks * cfg.withDefaults().CheckInterval
}

// dialledKey is the key under which a connection keeps the [time.Time] before its
// dial.
const dialledKey = "slipstream.dialled"

// noteDial records in a connection when its host was dialed.
func noteDial(conn *pgx.ConnConfig) {
	var dialled time.Time
	dial := conn.DialFunc
	// The driver dials one host after the other; the last is the one it keeps.
	conn.DialFunc = func(ctx context.Context, network, address string) (net.Conn, error) {
		dialled = time.Now()
		return dial(ctx, network, address)
	}
	after := conn.AfterConnect
	conn.AfterConnect = func(ctx context.Context, c *pgconn.PgConn) error {
		c.CustomData()[dialledKey] = dialled
		if after != nil {
			return after(ctx, c)
		}
		return nil
	}
}

// acquire returns a connection of the pool that leads to the primary as far as is
// known, closing those that may not.
func (o *Origin) acquire(ctx context.Context) (*pgxpool.Conn, error) {
	for {
		conn, err := o.pool.Acquire(ctx)
		if err != nil || !o.loadFrom.several || o.trusts(conn.Conn()) {
			return conn, err
		}
		// It is closed without a message, because the server may not read it. The
		// pool drops it, so each round leaves one less.
		_ = conn.Conn().PgConn().Conn().Close()
		_ = conn.Hijack().Close(ctx)
	}
}

func (o *Origin) trusts(conn *pgx.Conn) bool {
	limit := trustChecks * o.cfg.CheckInterval
	if time.Since(o.began)-time.Duration(o.met.Load()) < limit {
		return true
	}
	dialled, noted := conn.PgConn().CustomData()[dialledKey].(time.Time)
	return noted && time.Since(dialled) < limit
}
