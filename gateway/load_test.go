package gateway_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"net/http"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// big has two documents that are too large between healthy ones: 10 would be
// 200 MB of JSON because of its rows, 20 is 10 MB because of one value. The
// file itself stays small: the values are computed as they are read.
const big = `
CREATE TABLE doc (id INTEGER PRIMARY KEY, size INTEGER, v TEXT AS (hex(zeroblob(size))) VIRTUAL);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 40) INSERT INTO doc (id, size) SELECT i, 10 FROM n;
UPDATE doc SET size = 5000000 WHERE id = 20;
CREATE TABLE part (id INTEGER PRIMARY KEY, doc INTEGER REFERENCES doc (id), v TEXT AS (hex(zeroblob(10000))) VIRTUAL);
CREATE INDEX part_doc ON part (doc);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 10000) INSERT INTO part (doc) SELECT 10 FROM n;
`

const bigResource = `
max_document: 64KiB
resources:
  docs: { table: doc, key: [id], children: { parts: { table: part } }, load: { concurrency: 1 } }
`

// TestOversizedDocument: documents above the limit are answered with 502, only for
// their own keys, although they share a statement with healthy ones, and cost no
// memory.
func TestOversizedDocument(t *testing.T) {
	path := newDatabase(t, rollbackJournal+big)
	s := serveReady(t, path, bigResource)
	s.cached("/docs/1")
	before := s.statements()

	// While the only statement waits for the lock, the other keys gather.
	_, release := lock(t, path)
	answers := make([]answer, 41)
	var clients sync.WaitGroup
	ask := func(id int) {
		clients.Go(func() {
			a, err := s.try(t.Context(), http.MethodGet, fmt.Sprintf("%s/docs/%d", s.http, id))
			if err != nil {
				t.Error(err)
			}
			answers[id] = a
		})
	}
	ask(40)
	s.awaitMetric("slipstream_loads_in_flight", 1)
	time.Sleep(50 * time.Millisecond) // the statement has begun and waits
	for id := 2; id < 40; id++ {
		ask(id)
	}
	s.awaitMetric("slipstream_loads_in_flight", 39)
	release()
	clients.Wait()
	for id := 2; id <= 40; id++ {
		want := 200
		if id == 10 || id == 20 {
			want = 502
		}
		if a := answers[id]; a.status != want || want == 502 && a.problem() != 502 {
			t.Errorf("document %d: %v; expected %d", id, a, want)
		}
	}
	if n := s.statements() - before; n != 2 {
		t.Errorf("%v statements; expected one for the first key and one that gathered the others", n)
	}
	s.cached("/docs/9")
	s.cached("/docs/21")

	// Repeated: errors are not cached, so each attempt loads.
	allocated := func() (total, live uint64) {
		runtime.GC()
		var m runtime.MemStats
		runtime.ReadMemStats(&m)
		return m.TotalAlloc, m.HeapAlloc
	}
	total, live := allocated()
	const rounds = 5
	for range rounds {
		for _, p := range []string{"/docs/10", "/docs/20"} {
			if a := s.get(p); a.problem() != 502 || !strings.Contains(a.body, "larger than the configured limit") {
				t.Errorf("%s: %v; expected 502 that says why", p, a)
			}
		}
	}
	totalAfter, liveAfter := allocated()
	t.Logf("%d refusals allocated %d KiB", 2*rounds, (totalAfter-total)>>10)
	if grown := totalAfter - total; grown > 2*rounds<<20 {
		t.Errorf("%d refusals of documents allocated %d MiB; expected less than 1 MiB each", 2*rounds, grown>>20)
	}
	if liveAfter > live+4<<20 {
		t.Errorf("the heap grew from %d to %d MiB", live>>20, liveAfter>>20)
	}
	// Within the limit again, it is a document like any other.
	committed := write(t, path, "DELETE FROM part WHERE id > 1; UPDATE doc SET size = 1 WHERE id = 20")
	s.expectChange("/docs/20", `"v":"00"`, committed)
	s.expectChange("/docs/10", `"parts":[{`, committed)
	s.cached("/docs/20")
}

// awaitMetric waits until the sum of a metric is n.
func (s *served) awaitMetric(name string, n float64) {
	s.t.Helper()
	testkit.Eventually(s.t, patience, func() error {
		if v := s.metric(name); v != n {
			return fmt.Errorf("%s is %v, expected %v", name, v, n)
		}
		return nil
	})
}

// TestCancelledClients: 200 clients hang up in the middle of a load that takes
// long. The load continues without them, and everything that they held is
// released.
func TestCancelledClients(t *testing.T) {
	testkit.NoLeaks(t)
	// On a busy machine some may have an answer before all wait: the loads have a time limit.
	for range 5 {
		if cancelled(t) {
			return
		}
	}
	t.Error("loads ended before all clients waited for them")
}

// cancelled is an attempt of TestCancelledClients. It returns false if some clients got an answer.
func cancelled(t *testing.T) bool {
	path := newDatabase(t, rollbackJournal+company)
	s := serveReady(t, path, deptResource)
	s.cached("/depts/1")
	_, release := lock(t, path)
	ctx, hangUp := context.WithCancel(t.Context())
	defer hangUp()
	var clients sync.WaitGroup
	var early atomic.Int64
	for i := range 200 {
		clients.Go(func() {
			if a, err := s.try(ctx, http.MethodGet, fmt.Sprintf("%s/depts/%d", s.http, 2+i/2)); !errors.Is(err, context.Canceled) {
				t.Logf("client %d: %v, %v; expected it canceled", i, a, err)
				early.Add(1)
			}
		})
	}
	testkit.Eventually(t, patience, func() error {
		if n, m := s.metric("slipstream_loads_in_flight"), s.metric("slipstream_misses_total"); early.Load() == 0 && (n != 100 || m != 201) {
			return fmt.Errorf("%v loads of %v misses; expected that all requests wait", n, m)
		}
		return nil
	})
	hangUp()
	clients.Wait()
	if early.Load() > 0 {
		release()
		return false
	}
	// Their connections are gone before the loads end.
	s.awaitMetric("slipstream_http_connections", 0)
	release()
	s.awaitMetric("slipstream_loads_in_flight", 0)
	for _, p := range []string{"/depts/2", "/depts/101", "/depts/102"} {
		if a := s.cached(p); a.status != 200 {
			t.Errorf("%s afterwards: %v", p, a)
		}
	}
	return true
}

// TestSlowReaders: clients that request a large document and do not read it delay
// no other client, do not cause another load, and leave nothing behind.
func TestSlowReaders(t *testing.T) {
	testkit.NoLeaks(t)
	path := newDatabase(t, writeAhead+`CREATE TABLE doc (id INTEGER PRIMARY KEY, v TEXT);
		INSERT INTO doc VALUES (1, hex(zeroblob(2500000))), (2, 'small')`)
	s := serveReady(t, path, "resources: { docs: { table: doc, key: [id] } }")
	s.cached("/docs/1")
	s.cached("/docs/2")
	before := s.statements()
	var slow []net.Conn
	for range 50 {
		c := s.dial()
		defer c.Close()
		if _, err := io.WriteString(c, "GET /docs/1 HTTP/1.1\r\nHost: localhost\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
		slow = append(slow, c)
	}
	for range 100 {
		began := time.Now()
		if a := s.get("/docs/2"); a.status != 200 || time.Since(began) > time.Second {
			t.Fatalf("next to slow readers: %v after %v", a, time.Since(began))
		}
	}
	committed := write(t, path, "UPDATE doc SET v = 'changed'")
	s.expectChange("/docs/2", "changed", committed)
	s.expectChange("/docs/1", "changed", committed)
	// A slow reader gets the complete document that it requested, however late.
	rsp, err := http.ReadResponse(bufio.NewReader(slow[0]), nil)
	if err != nil {
		t.Fatal(err)
	}
	body, err := io.ReadAll(rsp.Body)
	rsp.Body.Close()
	if want := `{"id":1,"v":"` + strings.Repeat("0", 5_000_000) + `"}`; err != nil || string(body) != want {
		t.Errorf("a slow reader got %d bytes, %v; expected %d", len(body), err, len(want))
	}
	if n := s.statements() - before; n > 4 {
		t.Errorf("%v statements; expected only those after the change", n)
	}
}

// TestOneColdKey: 2,000 clients request one key that is not loaded yet. The
// database is queried once.
func TestOneColdKey(t *testing.T) {
	testkit.NoLeaks(t)
	const callers = 2000
	path := newDatabase(t, rollbackJournal+company)
	s := serveReady(t, path, "freshness: 10s\n"+deptResource)
	before := s.statements()
	conns := make([]net.Conn, callers)
	for i := range conns {
		conns[i] = s.dial()
		defer conns[i].Close()
	}
	// The lock keeps the load from ending before most have sent their request.
	_, release := lock(t, path)
	for _, c := range conns {
		if _, err := io.WriteString(c, "GET /depts/42 HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n"); err != nil {
			t.Fatal(err)
		}
	}
	s.awaitMetric("slipstream_loads_in_flight", 1)
	release()
	how := make(map[string]int)
	for _, c := range conns {
		rsp, err := http.ReadResponse(bufio.NewReader(c), nil)
		if err != nil {
			t.Fatal(err)
		}
		body, err := io.ReadAll(rsp.Body)
		rsp.Body.Close()
		if err != nil || rsp.StatusCode != 200 || !strings.HasPrefix(string(body), `{"deptno":42,`) {
			t.Fatalf("%d %s %v", rsp.StatusCode, body, err)
		}
		how[rsp.Header.Get("Cache-Status")]++
	}
	if n := s.statements() - before; n != 1 {
		t.Errorf("%v statements for one key; expected exactly one (answers: %v)", n, how)
	}
	if how["slipstream; fwd=uri-miss; stored"] != 1 || how["slipstream; fwd=uri-miss; collapsed"] == 0 {
		t.Errorf("answers %v; expected one load, shared by others", how)
	}
}
