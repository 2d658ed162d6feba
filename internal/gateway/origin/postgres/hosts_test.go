package postgres

import (
	"context"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Only with several hosts can a load read from a server that is no longer the primary.
func TestLoadLag(t *testing.T) {
	for url, want := range map[string]time.Duration{
		"postgres://h1/shop":                    0,
		"postgres://h1:5432,h1:5432/shop":       0,
		"postgres://h1,h2/shop":                 trustChecks * 50 * time.Millisecond,
		"postgres://h1,h2,h3/shop?sslmode=none": 0, // refused by Open
	} {
		if got := (Config{URL: url, CheckInterval: 50 * time.Millisecond}).LoadLag(); got != want {
			t.Errorf("%s: %v, want %v", url, got, want)
		}
	}
}

// silent is a host that accepts connections and never sends anything.
func silent(t *testing.T) string {
	t.Helper()
	return testkit.Serve(t, func(conn net.Conn, _ int) { _, _ = io.Copy(io.Discard, conn) }).Addr
}

// A host that is silent, not down, must not use up the time for the others.
func TestSilentHost(t *testing.T) {
	const soon = hostTimeout * 9 / 10
	pg := testkit.StartPostgres(t)
	address := strings.Split(strings.TrimPrefix(pg.URL, "postgres://postgres@"), "/")[0]
	for _, hosts := range []string{silent(t) + "," + address, silent(t) + "," + silent(t) + "," + address, address + "," + silent(t)} {
		testkit.NoLeaks(t)
		o := openOrigin(t, Config{URL: "postgres://postgres@" + hosts + "/postgres?sslmode=disable"})
		for range 3 {
			began := time.Now()
			conn, err := o.connectOne(t.Context())
			if err != nil {
				t.Fatalf("%s: %v", hosts, err)
			}
			if took := time.Since(began); took > soon {
				t.Errorf("%s: the stream's connection took %v", hosts, took)
			}
			conn.Close(context.WithoutCancel(t.Context()))
		}
		began := time.Now()
		if err := o.pool.Ping(t.Context()); err != nil {
			t.Fatal(err)
		}
		if took := time.Since(began); took > soon {
			t.Errorf("%s: a connection of a load took %v", hosts, took)
		}
	}
}

// If two servers are suitable, the first of the URL is used, unless it needs more than
// its head start, as it may on a busy machine.
func TestOrderOfHosts(t *testing.T) {
	first, second := testkit.StartPostgres(t), testkit.StartPostgres(t)
	o := openOrigin(t, Config{URL: fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=prefer", first.Port, second.Port)})
	quick := 0
	testkit.Eventually(t, time.Minute, func() error {
		began := time.Now()
		conn, err := o.connectOne(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		took := time.Since(began)
		port := conn.PgConn().Conn().RemoteAddr().(*net.TCPAddr).Port
		conn.Close(context.WithoutCancel(t.Context()))
		if took < headStart {
			quick++
			if port != first.Port {
				t.Errorf("connected to port %d within %v, want the first, %d", port, took, first.Port)
			}
		}
		if quick < 10 {
			return fmt.Errorf("%d connections within the head start of the first host, want 10", quick)
		}
		return nil
	})
	if n := len(hostConfigs(o.streamTo.pool.ConnConfig)); n != 2 {
		t.Errorf("%d hosts, want 2, each with and without TLS", n)
	}
}

// A connection of loads is kept while the stream reaches the primary, and closed when
// neither that nor its own dial is recent.
func TestTrustInConnections(t *testing.T) {
	server := testkit.StartPostgres(t)
	o := openOrigin(t, Config{
		URL:           fmt.Sprintf("postgres://postgres@127.0.0.1:%d,127.0.0.1:%d/postgres?sslmode=disable", server.Port, testkit.FreePort(t)),
		CheckInterval: 25 * time.Millisecond,
	})
	limit := trustChecks * o.cfg.CheckInterval
	backend := func() uint32 {
		t.Helper()
		conn, err := o.acquire(t.Context())
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Release()
		return conn.Conn().PgConn().PID()
	}
	// An attempt counts if the machine did not stall while it mattered.
	kept := func() error {
		first := backend()
		time.Sleep(2 * limit)
		met := time.Now()
		o.met.Store(int64(time.Since(o.began))) // as the stream does
		second := backend()
		if took := time.Since(met); took >= limit {
			return fmt.Errorf("a connection only %v after the stream met the primary", took)
		}
		if second != first {
			t.Errorf("backend %d, then %d: the stream had met the primary, expected the same", first, second)
		}
		return nil
	}
	testkit.Eventually(t, 30*time.Second, kept)
	first := backend()
	time.Sleep(2 * limit)
	dials := time.Now()
	second := backend()
	if second == first {
		t.Errorf("backend %d again %v after the stream met the primary, expected a new one", first, 2*limit)
	}
	for range 3 {
		if again := backend(); again != second && time.Since(dials) < limit {
			t.Errorf("backend %d, then %d: young enough, expected the same", second, again)
		}
	}
}
