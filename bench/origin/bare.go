package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strconv"
	"sync"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgxpool"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/postgres"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/memory"
	"github.com/slipstream-go/slipstream/internal/load"
)

// Subjects of bare-miss other than ours.
const (
	oneKey = "pgx"       // one key per query, each on a connection from the pool
	batch  = "pgx-batch" // 256 queries in one round trip, gathered by hand
)

// A source returns documents within the requesting process.
type source interface {
	get(ctx context.Context, key int64) ([]byte, error)
	Close() error
}

// bareTargets are the subjects of bare-miss, which run in the load process.
var bareTargets = loadproc.Targets{
	load.Ours: func(ctx context.Context, s loadproc.Spec) (load.Target, error) {
		src, err := openEmbedded(ctx, s)
		return newBare(s, src), err
	},
	oneKey: func(ctx context.Context, s loadproc.Spec) (load.Target, error) {
		src, err := openPool(ctx, s)
		return newBare(s, src), err
	},
	batch: func(ctx context.Context, s loadproc.Spec) (load.Target, error) {
		src, err := openGatherer(ctx, s)
		return newBare(s, src), err
	},
}

// bare wraps a source as a target: callers are goroutines, not connections.
type bare struct {
	source
	keys int64
	seed uint64
}

func newBare(s loadproc.Spec, src source) *bare {
	return &bare{source: src, keys: s.Keys, seed: s.Seed}
}

// NewCaller implements [load.Target].
func (b *bare) NewCaller(_ context.Context, i int) (load.Caller, error) {
	return &bareCaller{bare: b, rng: rand.New(rand.NewPCG(b.seed, uint64(i)))}, nil
}

// Counters returns a counter of the answers that came from the cache.
func (b *bare) Counters() []load.Counter {
	e, ok := b.source.(*embedded)
	if !ok {
		return nil
	}
	of := func(value func(cache.ResourceStats) int64) func(context.Context) (float64, error) {
		return func(context.Context) (float64, error) { return float64(value(e.cache.Stats().Resources[0])), nil }
	}
	return []load.Counter{
		{Name: hits, Read: of(func(r cache.ResourceStats) int64 { return r.Hits })},
		{Name: misses, Read: of(func(r cache.ResourceStats) int64 { return r.Misses })},
		{Name: sent, Read: of(func(r cache.ResourceStats) int64 { return r.Statements })},
	}
}

type bareCaller struct {
	*bare
	rng *rand.Rand
}

// Do implements [load.Caller].
func (c *bareCaller) Do(ctx context.Context) error {
	key := 1 + c.rng.Int64N(c.keys)
	body, err := c.get(ctx, key)
	if err != nil {
		return err
	}
	return checkKey(body, key)
}

// Close implements [load.Caller]: the source is closed once, by the target.
func (*bareCaller) Close() error { return nil }

// checkKey compares the first member of a document with the requested key.
func checkKey(body []byte, key int64) error {
	rest, ok := bytes.CutPrefix(body, []byte(`{"deptno"`))
	rest = bytes.TrimLeft(rest, " :")
	end := bytes.IndexByte(rest, ',')
	if !ok || end < 0 || string(bytes.TrimSpace(rest[:end])) != strconv.FormatInt(key, 10) {
		return fmt.Errorf("key %d, body %.40q", key, body)
	}
	return nil
}

// embedded is our cache with our origin, and the stream that keeps it fresh.
type embedded struct {
	// Immutable after openEmbedded.
	cache  *cache.Cache
	origin *postgres.Origin
	cancel context.CancelFunc
	done   chan error // what the stream returned
}

func openEmbedded(ctx context.Context, s loadproc.Spec) (*embedded, error) {
	declaration := resource.Resource{
		Name: "depts", Key: []string{"deptno"}, Freshness: time.Second,
		Root: resource.Node{Table: "dept", Children: []resource.Child{{Name: "emps", Node: resource.Node{
			Table: "emp", On: []resource.Join{{Column: "deptno", Parent: "deptno"}}, Order: []resource.Order{{Column: "empno"}},
		}}}},
	}
	o, err := postgres.Open(ctx, postgres.Config{URL: s.Database, Connections: s.Connections}, []resource.Resource{declaration})
	if err != nil {
		return nil, err
	}
	tier, err := memory.New(memory.MinBudget)
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	begun := time.Now()
	clock := func() time.Duration { return time.Since(begun) }
	c, err := cache.New(cache.Config{
		Resources: []cache.Resource{{Name: "depts", Freshness: time.Second, MaxLoads: s.Connections}},
		Origin:    o, Tiers: []cache.Tier{tier}, Clock: clock,
	})
	if err != nil {
		return nil, errors.Join(err, o.Close())
	}
	e := &embedded{cache: c, origin: o, done: make(chan error, 1)}
	ctx, e.cancel = context.WithCancel(ctx)
	stream := o.Stream(clock)
	// Ends with Close, which waits for it.
	go func() { e.done <- stream.Run(ctx, c) }()
	return e, nil
}

func (e *embedded) get(ctx context.Context, key int64) ([]byte, error) {
	answer, err := e.cache.Get(ctx, cache.Key{ID: strconv.FormatInt(key, 10)}, e.cache.Now())
	if err != nil {
		return nil, err
	}
	if answer.Doc.Missing() {
		return nil, fmt.Errorf("no document %d", key)
	}
	return answer.Doc.Body(), nil
}

func (e *embedded) Close() error {
	e.cancel()
	err := <-e.done
	if errors.Is(err, context.Canceled) {
		err = nil
	}
	return errors.Join(err, e.cache.Close(), e.origin.Close())
}

// oneDocument is the statement that one would write by hand, with JSON generated by the database.
const oneDocument = `
SELECT json_build_object('deptno', d.deptno, 'dname', d.dname, 'loc', d.loc, 'emps', (
	SELECT coalesce(json_agg(json_build_object('empno', e.empno, 'deptno', e.deptno, 'ename', e.ename, 'job', e.job,
		'mgr', e.mgr, 'hiredate', e.hiredate, 'sal', e.sal, 'comm', e.comm) ORDER BY e.empno), '[]')
	FROM emp e WHERE e.deptno = d.deptno))::text
FROM dept d WHERE d.deptno = $1`

// pool requests one key per query.
type pool struct{ pool *pgxpool.Pool }

func openPool(ctx context.Context, s loadproc.Spec) (*pool, error) {
	cfg, err := pgxpool.ParseConfig(s.Database)
	if err != nil {
		return nil, err
	}
	cfg.MaxConns = int32(s.Connections)
	p, err := pgxpool.NewWithConfig(ctx, cfg)
	return &pool{p}, err
}

func (p *pool) get(ctx context.Context, key int64) ([]byte, error) {
	var body []byte
	err := p.pool.QueryRow(ctx, oneDocument, key).Scan(&body)
	return body, err
}

func (p *pool) Close() error {
	p.pool.Close()
	return nil
}

// gatherKeys is the maximum number of keys in a batch, the same as in ours.
const gatherKeys = 256

// gatherer has a goroutine per connection, which takes the waiting keys, requests
// them in one pgx.Batch and distributes the answers.
type gatherer struct {
	// Immutable after openGatherer.
	pool    *pgxpool.Pool
	waiting chan *wanted
	workers sync.WaitGroup
}

type wanted struct {
	key  int64
	body []byte
	err  error
	done chan struct{} // of capacity one
}

func openGatherer(ctx context.Context, s loadproc.Spec) (*gatherer, error) {
	p, err := openPool(ctx, s)
	if err != nil {
		return nil, err
	}
	g := &gatherer{pool: p.pool, waiting: make(chan *wanted, 4096)}
	for range s.Connections {
		// Ends when Close closes waiting; Close waits for it.
		g.workers.Go(func() { g.work(ctx) })
	}
	return g, nil
}

func (g *gatherer) work(ctx context.Context) {
	var gathered []*wanted
	for first := range g.waiting {
		gathered = append(gathered[:0], first)
		for len(gathered) < gatherKeys {
			select {
			case next, open := <-g.waiting:
				if open {
					gathered = append(gathered, next)
					continue
				}
			default:
			}
			break
		}
		var b pgx.Batch
		for _, w := range gathered {
			b.Queue(oneDocument, w.key)
		}
		results := g.pool.SendBatch(ctx, &b)
		for _, w := range gathered {
			w.err = results.QueryRow().Scan(&w.body)
		}
		err := results.Close()
		for _, w := range gathered {
			if w.err == nil {
				w.err = err
			}
			w.done <- struct{}{}
		}
	}
}

func (g *gatherer) get(_ context.Context, key int64) ([]byte, error) {
	w := &wanted{key: key, done: make(chan struct{}, 1)}
	g.waiting <- w
	<-w.done
	return w.body, w.err
}

func (g *gatherer) Close() error {
	close(g.waiting)
	g.workers.Wait()
	g.pool.Close()
	return nil
}
