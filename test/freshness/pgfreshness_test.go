//go:build unix

package freshness

import (
	"context"
	"fmt"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/internal/testkit/freshness"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// pgRun is a run of the real command with a real PostgreSQL server, writers that connect directly
// to the server, and readers that connect to the gateway. The gateway reaches the server through a
// proxy that misbehaves on demand. Every answer is checked against a model of all rows as soon as
// it arrives.
type pgRun struct {
	// Immutable after newPGRun.
	options pgOptions
	dir     string
	config  string
	url     string // of the gateway
	admin   string
	redis   int // port
	thrift  int // port
	service *idl.Service
	seed    uint64
	major   int // version of the servers
	world   *pgWorld
	model   *freshness.Rows
	readers sync.WaitGroup
	writers sync.WaitGroup
	stop    context.CancelFunc
	counts  pgOpCounts
	reads   pgReads
	proxies []*faultproxy.Proxy // one for each server
	servers []*testkit.Postgres // their Process belongs to the test's goroutine

	whole *testing.T // the test that owns the processes, which outlive subtests

	// Owned by the test's goroutine.
	t       *testing.T // of the running subtest
	gateway *testkit.Process
	primary int // index in servers

	// Atomics: the test writes.
	direct atomic.Pointer[string] // the URL that writers use
	pause  atomic.Int64           // of writers between two writes, nanoseconds
	over   atomic.Bool
}

// pgOptions are the options of a run.
type pgOptions struct {
	bound     time.Duration
	notify    bool
	standby   bool
	disk      bool // use a disk tier, with none of its documents in memory
	sensors   int
	perSensor int
	writers   int
	readers   int // over HTTP
}

// The numbers of additional readers over the Redis protocol and over Thrift.
const (
	redisReaders  = 2
	thriftReaders = 2 // in the Binary and in the Compact protocol
)

// pgSettings are the settings of the servers. The WAL writer sleeps for a long time, so that
// commits with synchronous_commit off can be lost.
var pgSettings = []string{"max_prepared_transactions=20", "max_connections=40", "autovacuum_naptime=5s", "wal_writer_delay=10s"}

// Pauses of each writer between two writes.
const (
	briskly = 8 * time.Millisecond
	calmly  = 400 * time.Millisecond
)

func newPGRun(t *testing.T, o pgOptions) *pgRun {
	r := &pgRun{options: o, whole: t, t: t, dir: t.TempDir(), seed: testkit.Seed(t), model: freshness.NewRows(o.bound)}
	r.world = newPGWorld(r.model, o.sensors, o.perSensor, func(format string, args ...any) { t.Errorf(format, args...) })
	first := testkit.StartPostgres(t, pgSettings...)
	r.servers, r.major = []*testkit.Postgres{first}, first.Major(t)
	r.makeDatabase()
	if o.standby {
		r.servers = append(r.servers, first.StartStandby(t, 0, pgSettings...))
	}
	var hosts []string
	for i, server := range r.servers {
		proxy := faultproxy.Start(t, fmt.Sprintf("127.0.0.1:%d", server.Port), faultproxy.Options{Seed: r.seed + uint64(i)})
		r.proxies = append(r.proxies, proxy)
		hosts = append(hosts, proxy.Addr())
	}
	port, admin := testkit.FreePort(t), testkit.FreePort(t)
	r.redis, r.thrift = testkit.FreePort(t), testkit.FreePort(t)
	r.url, r.admin = fmt.Sprintf("http://127.0.0.1:%d", port), fmt.Sprintf("http://127.0.0.1:%d", admin)
	resources, err := os.ReadFile("testdata/pgfreshness.yaml")
	if err != nil {
		t.Fatal(err)
	}
	r.config = filepath.Join(r.dir, "slipstream.yaml")
	text := fmt.Sprintf(`
origin:
  url: "postgres://postgres@%s/postgres?sslmode=disable&connect_timeout=2"
  notify: %v
freshness: %v
frontends: { http: "127.0.0.1:%d", redis: "127.0.0.1:%d", thrift: "127.0.0.1:%d" }
admin: "127.0.0.1:%d"
%s`, strings.Join(hosts, ","), o.notify, o.bound, port, r.redis, r.thrift, admin, resources)
	if o.disk {
		text += diskTiers
	}
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	r.direct.Store(&first.URL)
	r.pause.Store(int64(briskly))
	r.apply()
	r.service = numberFields(t, r.config)
	r.startGateway()
	r.begin()
	return r
}

// makeDatabase creates the tables and inserts half of the rows that may exist.
func (r *pgRun) makeDatabase() {
	schema, err := os.ReadFile("testdata/pgfreshness.sql")
	if err != nil {
		r.t.Fatal(err)
	}
	random := testkit.Fork(r.seed, 1)
	sql := []string{string(schema)}
	w := r.world
	p := &pgWrite{world: w}
	for _, table := range w.tables {
		for _, row := range table.rows {
			if table != w.product && row.id%2 == 0 {
				continue
			}
			parent := table.pickParent(random)
			version := w.next()
			row.parent.Store(parent)
			p.change(row.model, version, parent.model)
			sql = append(sql, fmt.Sprintf("INSERT INTO %s (%s) VALUES %s", table.name, table.columns(), tuple(row.values(parent, version))))
		}
	}
	version := w.next()
	sql = append(sql,
		fmt.Sprintf("INSERT INTO sensor SELECT s, %d FROM generate_series(1, %d) s", version, len(w.sensors)),
		fmt.Sprintf("INSERT INTO reading SELECT s, n, %d FROM generate_series(1, %d) s, generate_series(1, %d) n", version, len(w.sensors), w.perSensor),
		"ANALYZE")
	for i := range w.sensors {
		p.change(w.sensors[i], version, freshness.Top)
		p.change(w.readings[i], version, w.sensors[i])
	}
	p.change(w.extra, 1, freshness.Top)
	p.begin()
	r.servers[0].PSQL(r.t, strings.Join(sql, ";\n"))
	p.end(nil)
}

// begin starts writers and readers; finish stops them and waits.
func (r *pgRun) begin() {
	ctx, cancel := context.WithCancel(context.Background())
	r.stop = cancel
	r.whole.Cleanup(r.halt) // if the test ends early
	for n := range r.options.writers {
		writer := r.newWriter(ctx, n)
		r.writers.Go(func() {
			defer writer.close()
			for !r.over.Load() {
				writer.step()
				writer.rest(2 * time.Duration(r.pause.Load()))
			}
		})
	}
	for n := range r.options.readers + redisReaders + thriftReaders {
		var from documents = overHTTP{r.url, newOverHTTP(r.url).client, &r.reads.disk}
		switch i := n - r.options.readers; {
		case i >= redisReaders:
			from = newOverThrift(r.whole, r.thrift, r.service, rpc.ClientConfig{Compact: i > redisReaders})
		case i >= 0:
			from = newOverRedis(r.whole, r.redis, 2+n%2)
		}
		reader := newPGReader(r.world, from, testkit.Fork(r.seed, uint64(100+n)), &r.reads)
		r.readers.Go(func() {
			defer from.close()
			for !r.over.Load() {
				if !reader.step() {
					time.Sleep(5 * time.Millisecond) // the gateway may be down for a while
				}
				// Leave documents in the cache for a while. Readers over the Redis protocol and
				// Thrift need not be fast, and leave the CPU to the others. A disk tier answers only for a
				// moment after each start of the gateway.
				if n >= r.options.readers || !blackbox.Long() && !r.options.disk || reader.random.IntN(4) == 0 {
					time.Sleep(between(reader.random, 4*time.Millisecond))
				}
				if n >= r.options.readers+redisReaders {
					time.Sleep(between(reader.random, 20*time.Millisecond)) // they decode with the IDL, which takes more CPU
				}
			}
		})
	}
}

func (r *pgRun) newWriter(ctx context.Context, n int) *pgWriter {
	return &pgWriter{
		ctx: ctx, world: r.world, random: testkit.Fork(r.seed, uint64(10+n)), dial: r.dial, number: n, major: r.major, counts: &r.counts,
		// Only some hold transactions open: changes of a table wait for them.
		noHeld: n%3 != 0, noPrepared: r.options.notify,
	}
}

// dial connects directly, not through the proxy, to the server that accepts writes.
func (r *pgRun) dial(ctx context.Context) (*pgx.Conn, error) {
	ctx, cancel := context.WithTimeout(ctx, 5*time.Second)
	defer cancel()
	return pgx.Connect(ctx, *r.direct.Load())
}

// apply runs db apply. It locks tables that are being written to, so it may ask the user to try
// again.
func (r *pgRun) apply() {
	r.t.Helper()
	r.world.races.Lock()
	defer r.world.races.Unlock()
	testkit.Eventually(r.t, 30*time.Second, func() error {
		out := blackbox.Run(r.whole, "db", "apply", "-c", r.config)
		if out.Code == 0 {
			return nil
		}
		if !strings.Contains(out.Stderr, "try again") {
			r.t.Fatalf("db apply: exit %d\n%s%s", out.Code, out.Stdout, out.Stderr)
		}
		r.t.Logf("db apply: exit %d: %s", out.Code, out.Stderr)
		return fmt.Errorf("db apply: exit %d", out.Code)
	})
}

func (r *pgRun) startGateway() {
	r.gateway = testkit.Start(r.whole, testkit.Command{
		Path: blackbox.Program(), Args: []string{"serve", "-c", r.config}, Ready: r.ready,
	})
}

// ready returns an error unless the gateway reports that it keeps its promise.
func (r *pgRun) ready(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, 2*time.Second)
	defer cancel()
	status, _, body, err := blackbox.Get(ctx, r.admin+"/ready")
	if err == nil && status != http.StatusOK {
		err = fmt.Errorf("not ready: %s", body)
	}
	return err
}

// regained waits until the promise holds again and documents come from the cache.
func (r *pgRun) regained(within time.Duration) {
	r.t.Helper()
	began := time.Now()
	testkit.Eventually(r.t, within, func() error { return r.ready(r.t.Context()) })
	hits := r.reads.hits.Load()
	testkit.Eventually(r.t, within, func() error {
		if now := r.reads.hits.Load(); now < hits+20 {
			return fmt.Errorf("%d answers from the cache since it was ready, expected 20", now-hits)
		}
		return nil
	})
	r.t.Logf("the promise held again after %v", time.Since(began).Round(time.Millisecond))
}

// warm waits until the cache holds many documents that could be wrong.
func (r *pgRun) warm() {
	hits := r.reads.hits.Load()
	testkit.Eventually(r.t, 4*time.Minute, func() error {
		if now := r.reads.hits.Load(); now < hits+500 {
			return fmt.Errorf("%d answers from the cache, expected 500", now-hits)
		}
		return nil
	})
}

// run injects one fault, waits until the promise is kept again, and then long enough to detect
// missed changes.
func (r *pgRun) run(t *testing.T, name string, fault func(*pgRun)) (ok bool) {
	return t.Run(name, func(t *testing.T) {
		outer := r.t
		r.t = t
		defer func() { r.t = outer }()
		r.warm()
		before := r.model.Report()
		fault(r)
		// A document that changes often hides missed changes, because the next change drops it.
		r.pause.Store(int64(calmly))
		defer r.pause.Store(int64(briskly))
		if r.world.unsettled.Load() > 0 {
			r.settle(freshness.Now())
		}
		r.regained(15 * time.Second)
		time.Sleep(2 * r.options.bound)
		if err := r.model.Take(); err != nil {
			t.Error(err)
		}
		after := r.model.Report()
		t.Logf("%d answers against %d writes", after.Answers-before.Answers, after.Writes-before.Writes)
	})
}

// lull pauses the changes for a while: a missed change is visible only until the next
// one of the same document.
func (r *pgRun) lull() {
	before := r.pause.Swap(int64(calmly))
	time.Sleep(3 * r.options.bound)
	r.pause.Store(before)
}

// halt ends readers and writers. It may be called again.
func (r *pgRun) halt() {
	r.over.Store(true)
	r.readers.Wait()
	r.stop()
	r.writers.Wait()
}

// finish stops everything and reports.
func (r *pgRun) finish() freshness.RowsReport {
	testkit.Eventually(r.t, 2*time.Minute, func() error {
		if n, m := r.reads.redis.Load(), r.reads.thrift.Load(); min(n, m) < 100 && !r.over.Load() {
			return fmt.Errorf("%d answers over the Redis protocol and %d over Thrift: too few to prove anything", n, m)
		}
		return nil
	})
	r.halt()
	if r.world.unsettled.Load() > 0 {
		r.settle(freshness.Now())
	}
	if err := r.model.Verify(r.look()); err != nil && !r.t.Failed() {
		r.t.Errorf("the test's own model is wrong: %v", err)
	}
	if err := r.model.Take(); err != nil {
		r.t.Error(err)
	}
	report := r.model.Report()
	hits, others := r.reads.hits.Load(), r.reads.others.Load()
	r.t.Logf("%v", report)
	r.t.Logf("%d answers from the cache, %d loaded, %d over the Redis protocol, %d over Thrift, %d requests failed",
		hits, others, r.reads.redis.Load(), r.reads.thrift.Load(), r.reads.failed.Load())
	var ops []string
	for i, op := range pgOps {
		ops = append(ops, fmt.Sprintf("%s %d", op.name, r.counts[i].Load()))
	}
	r.t.Logf("committed: %s", strings.Join(ops, ", "))
	return report
}

// awaitEveryOperation waits until each kind of write that the server can do has been
// committed, or the test would prove nothing about it.
func (r *pgRun) awaitEveryOperation() {
	r.t.Helper()
	testkit.Eventually(r.t, 2*time.Minute, func() error {
		for i, op := range pgOps {
			if op.since <= r.major && r.counts[i].Load() == 0 {
				return fmt.Errorf("no %q was committed", op.name)
			}
		}
		return nil
	})
}
