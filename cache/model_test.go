package cache

import (
	"context"
	"encoding/json"
	"fmt"
	"math/rand/v2"
	"os"
	"strconv"
	"sync"
	"testing"
	"testing/synctest"
	"time"
)

// database is a model of an origin with snapshots: transactions take a number
// when they begin, and become visible when they commit, in any order.
type database struct {
	mu       sync.Mutex
	next     Tx
	running  map[Tx]bool
	commits  []commit
	versions map[Key]int // commits of earlier histories, which a new one contains
	sequence int         // of histories; each has its own numbers
}

type commit struct {
	tx  Tx
	key Key
}

func newDatabase() *database {
	return &database{next: 1, running: make(map[Tx]bool), versions: make(map[Key]int)}
}

func (db *database) begin() Tx {
	db.mu.Lock()
	defer db.mu.Unlock()
	tx := db.next
	db.next++
	db.running[tx] = true
	return tx
}

// commit makes tx visible as a change of key and returns the key's new version.
func (db *database) commit(tx Tx, key Key) (version int) {
	db.mu.Lock()
	defer db.mu.Unlock()
	delete(db.running, tx)
	db.commits = append(db.commits, commit{tx, key})
	version = db.versions[key]
	for _, c := range db.commits {
		if c.key == key {
			version++
		}
	}
	return version
}

// replace begins a new history with the present content and fresh numbers, as a
// restored file does. No transaction may be running.
func (db *database) replace() {
	db.mu.Lock()
	defer db.mu.Unlock()
	for _, c := range db.commits {
		db.versions[c.key]++
	}
	db.commits, db.next = nil, 1
	db.sequence++
}

func (db *database) snapshotLocked() Snapshot {
	s := Snapshot{XMin: db.next, XMax: db.next}
	for tx := Tx(1); tx < db.next; tx++ {
		if db.running[tx] {
			s.XMin = min(s.XMin, tx)
			s.InProgress = append(s.InProgress, tx)
		}
	}
	return s
}

// read returns the documents of keys and the snapshot they were read in. A key
// without a version is a missing row.
func (db *database) read(resource ResourceID, ids []string) Batch {
	db.mu.Lock()
	defer db.mu.Unlock()
	b := Batch{Snapshot: db.snapshotLocked()}
	for _, id := range ids {
		key := Key{resource, id}
		version := db.versions[key]
		for _, c := range db.commits {
			if c.key == key {
				version++
			}
		}
		var l Loaded
		if version > 0 {
			l.Body = modelBody(key, version)
		}
		b.Docs = append(b.Docs, l)
	}
	return b
}

// since returns the commits from index n on, the history they belong to, and a
// snapshot that sees them.
func (db *database) since(n int) ([]commit, int, Snapshot) {
	db.mu.Lock()
	defer db.mu.Unlock()
	if n > len(db.commits) {
		n = len(db.commits)
	}
	return append([]commit(nil), db.commits[n:]...), db.sequence, db.snapshotLocked()
}

func modelBody(key Key, version int) []byte {
	return []byte(fmt.Sprintf(`{"key":%q,"version":%d}`, key.ID, version))
}

// modelVersion reads the version out of an answer, 0 for a missing row.
func modelVersion(t *testing.T, key Key, d *Document) int {
	if d.Missing() {
		return 0
	}
	var v struct {
		Key     string
		Version int
	}
	if err := json.Unmarshal(d.Body(), &v); err != nil || v.Key != key.ID {
		t.Errorf("answer for %q is %s (%v)", key.ID, d.Body(), err)
	}
	return v.Version
}

// mapTier is a tier without a budget whose lookups take (virtual) time.
type mapTier struct {
	pause func() // if nil, none
	mu    sync.Mutex
	docs  map[Key]*Document
}

func newMapTier() *mapTier { return &mapTier{docs: make(map[Key]*Document)} }

func (m *mapTier) Name() string { return "map" }

func (m *mapTier) Peek(key Key) *Document {
	if m.pause != nil {
		m.pause()
		defer m.pause()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.docs[key]
}

func (m *mapTier) Get(context.Context, Key) (*Document, error) { return nil, nil }

func (m *mapTier) Put(key Key, d *Document) {
	m.mu.Lock()
	defer m.mu.Unlock()
	m.docs[key] = d
}

func (m *mapTier) Remove(key Key) { m.RemoveIf(key, func(*Document) bool { return true }) }

func (m *mapTier) RemoveIf(key Key, gone func(*Document) bool) {
	m.mu.Lock()
	defer m.mu.Unlock()
	if d := m.docs[key]; d != nil && gone(d) {
		delete(m.docs, key)
	}
}

func (m *mapTier) Sweep(gone func(Key, *Document) bool) {
	if m.pause != nil {
		m.pause()
	}
	m.mu.Lock()
	defer m.mu.Unlock()
	for key, d := range m.docs {
		if gone(key, d) {
			delete(m.docs, key)
		}
	}
}

func (m *mapTier) Clear() {
	m.mu.Lock()
	defer m.mu.Unlock()
	clear(m.docs)
}

func (m *mapTier) Stats() TierStats {
	m.mu.Lock()
	defer m.mu.Unlock()
	return TierStats{Documents: int64(len(m.docs))}
}

func (m *mapTier) Close() error { return nil }

// originFunc is an Origin made of a function.
type originFunc func(ctx context.Context, resource ResourceID, ids []string) (Batch, error)

func (f originFunc) Load(ctx context.Context, resource ResourceID, ids []string) (Batch, error) {
	return f(ctx, resource, ids)
}

// history is what the oracle knows: when each version of a key was acknowledged.
type history struct {
	mu    sync.Mutex
	acked map[Key][]time.Duration // [version-1]
}

func newHistory() *history { return &history{acked: make(map[Key][]time.Duration)} }

func (h *history) ack(key Key, version int, at time.Duration) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for len(h.acked[key]) < version {
		h.acked[key] = append(h.acked[key], 1<<62)
	}
	h.acked[key][version-1] = at
}

// required returns the oldest version that a GET begun at start may return.
func (h *history) required(key Key, start, x time.Duration) (version int) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, at := range h.acked[key] {
		if at < start-x {
			version = i + 1
		}
	}
	return version
}

func modelSeeds(t *testing.T, n int) []uint64 {
	if s := os.Getenv("SLIPSTREAM_SEED"); s != "" {
		seed, err := strconv.ParseUint(s, 10, 64)
		if err != nil {
			t.Fatalf("SLIPSTREAM_SEED: %v", err)
		}
		return []uint64{seed}
	}
	seeds := make([]uint64, n)
	for i := range seeds {
		seeds[i] = rand.Uint64()
	}
	return seeds
}

// TestModelRandom runs random schedules of writers, readers, loads, and a stream
// that lags, breaks, flushes and loses its history, and checks every answer
// against the promise.
func TestModelRandom(t *testing.T) {
	seeds := 1500
	if testing.Short() {
		seeds = 200
	}
	answers, verified, aged, stored := 0, int64(0), int64(0), int64(0)
	schedules := make([]int, 3) // with so many stores
	list := modelSeeds(t, seeds)
	for _, seed := range list {
		ok := t.Run("", func(t *testing.T) {
			synctest.Test(t, func(t *testing.T) {
				m := newModel(t, seed)
				m.run()
				answers += m.answers
				r := m.cache.Stats().Resources
				verified += r[0].Verified + r[1].Verified
				aged += r[2].Hits
				stored += m.stores.hits.Load()
				schedules[len(m.stores.attached)]++
			})
		})
		if !ok {
			t.Fatalf("replay with: SLIPSTREAM_SEED=%d go test ./cache -run TestModelRandom", seed)
		}
	}
	t.Logf("%d answers checked; %d waited for the stream, %d were hits without a promise, %d of stores; schedules with no store, one and two: %d",
		answers, verified, aged, stored, schedules)
	if answers < len(list)*90 || verified < int64(len(list)/4) || aged < int64(len(list)) || len(list) > 1 && stored < int64(len(list)) {
		t.Errorf("only %d answers for %d schedules: the model makes no progress", answers, len(list))
	}
}

type model struct {
	t       *testing.T
	x       time.Duration
	start   time.Time
	db      *database
	history *history
	tier    *mapTier
	stores  *modelStores
	cache   *Cache
	keys    []Key
	done    chan struct{} // closed when readers are through
	ordered bool          // commits in the order of numbers
	replace bool          // the history is replaced at times
	deaf    bool          // the stream reports nothing about the resource without a promise
	blind   bool          // and its loads return no snapshot
	woken   chan struct{} // Config.Wake was called
	answers int
	mu      sync.Mutex
	random  *rand.Rand
}

func newModel(t *testing.T, seed uint64) *model {
	m := &model{
		t: t, x: time.Second, start: time.Now(), db: newDatabase(), history: newHistory(),
		tier: newMapTier(), done: make(chan struct{}), random: rand.New(rand.NewPCG(seed, 1)),
		woken: make(chan struct{}, 1),
	}
	m.ordered = m.chance(0.5)
	m.replace = m.ordered && m.chance(0.4)
	if m.chance(0.5) {
		m.tier.pause = func() {
			if m.chance(0.2) {
				time.Sleep(m.upTo(3 * m.x))
			}
		}
	}
	for i := range 4 {
		m.keys = append(m.keys, Key{ResourceID(i % 3), strconv.Itoa(i)})
	}
	m.deaf, m.blind = m.chance(0.5), m.chance(0.5)
	config := Config{
		Resources: []Resource{
			{Name: "a", MaxLoads: 1 + m.intn(3), MaxBatch: 2, Policy: m.policy()},
			{Name: "b", Policy: m.policy()},
			{Name: "c", NoPromise: true},
		},
		Origin: originFunc(m.load),
		Tiers:  []Tier{m.tier},
		Clock:  m.now,
	}
	if m.chance(0.3) {
		config.MaxTombstones = 2 * tombstoneBytes
	}
	if m.chance(0.8) {
		config.Wake = func() {
			select {
			case m.woken <- struct{}{}:
			default:
			}
		}
	}
	config.StoreOnly = m.chance(0.3)
	m.stores = newModelStores(m, m.intn(3))
	var err error
	if m.cache, err = New(config); err != nil {
		t.Fatal(err)
	}
	return m
}

func (m *model) now() time.Duration { return time.Since(m.start) }

func (m *model) chance(p float64) bool {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.Float64() < p
}

func (m *model) intn(n int) int {
	m.mu.Lock()
	defer m.mu.Unlock()
	return m.random.IntN(n)
}

// policy is one under which every answer keeps the promise.
func (m *model) policy() Policy {
	if m.chance(0.5) {
		return Verify
	}
	return Reload
}

// upTo returns a duration below d that is usually short.
func (m *model) upTo(d time.Duration) time.Duration {
	m.mu.Lock()
	defer m.mu.Unlock()
	f := m.random.Float64()
	return time.Duration(f * f * f * float64(d))
}

func (m *model) load(ctx context.Context, resource ResourceID, ids []string) (Batch, error) {
	time.Sleep(m.upTo(2 * m.x))
	b := m.db.read(resource, ids)
	if resource == 2 && m.blind {
		b.Snapshot = Snapshot{}
	}
	time.Sleep(m.upTo(3 * m.x))
	if m.chance(0.05) {
		return Batch{}, fmt.Errorf("injected")
	}
	return b, ctx.Err()
}

func (m *model) run() {
	var others, readers sync.WaitGroup
	for range 2 {
		others.Go(m.write)
	}
	others.Go(m.stream)
	others.Go(m.stores.run)
	for range 4 {
		readers.Go(m.read)
	}
	readers.Wait()
	close(m.done)
	others.Wait()
	if err := m.cache.Close(); err != nil {
		m.t.Error(err)
	}
}

func (m *model) over() bool {
	select {
	case <-m.done:
		return true
	default:
		return false
	}
}

// write commits changes; the acknowledgement comes a little after the commit. In
// a database that replaces its history, nothing runs across the replacement.
func (m *model) write() {
	for !m.over() {
		time.Sleep(m.upTo(2 * m.x))
		key := m.keys[m.intn(len(m.keys))]
		tx := m.db.begin()
		if !m.ordered {
			time.Sleep(m.upTo(m.x))
		}
		version := m.db.commit(tx, key)
		if m.chance(0.3) {
			time.Sleep(m.upTo(m.x / 2))
		}
		m.history.ack(key, version, m.now())
	}
}

func (m *model) read() {
	for range 40 {
		time.Sleep(m.upTo(m.x))
		key := m.keys[m.intn(len(m.keys))]
		start := m.now()
		ctx, cancel := context.WithTimeout(context.Background(), 30*m.x)
		if m.chance(0.1) {
			ctx, cancel = context.WithTimeout(context.Background(), m.upTo(m.x))
		}
		keys, answers := []Key{key}, make([]Answer, 1)
		var err error
		if m.chance(0.2) {
			keys, answers, err = m.readMany(ctx, start)
		} else {
			answers[0], err = m.cache.Get(ctx, key, start)
		}
		cancel()
		if err != nil {
			continue
		}
		for i, key := range keys {
			m.judge(key, start, answers[i])
		}
	}
}

// stream delivers the commits as the stream of an origin does: the send time
// first, then the read, then Apply, and only then Advance.
func (m *model) stream() {
	seen, sequence := 0, 0
	store, tables := uint64(0), digests{} // the last store whose changes it has processed
	unheard, regained := -1, false        // the resource that has lost its promise, and whether it regains it now
	for i := range m.cache.resources {
		m.cache.SetPromise(ResourceID(i), true, "")
	}
	for !m.over() {
		select {
		case <-m.woken:
		case <-time.After(m.x/10 + m.upTo(m.x/4)):
		}
		switch {
		case m.chance(0.02): // a break
			time.Sleep(m.upTo(10 * m.x))
		case m.replace && m.chance(0.02):
			m.db.replace()
		case unheard < 0 && m.chance(0.03): // a trigger is missing: the changes are not observed
			unheard = m.intn(2)
			tables[ResourceID(unheard)]++
			m.cache.SetPromise(ResourceID(unheard), false, "injected")
		case unheard >= 0 && m.chance(0.2):
			regained = true
		case m.chance(0.02):
			m.cache.Purge(m.keys[m.intn(len(m.keys))])
		}
		sent := m.now()
		position, number, waits := m.cache.Waiting()
		time.Sleep(m.upTo(m.x / 2))
		commits, now, snapshot := m.db.since(seen)
		if now != sequence {
			m.cache.Void("history replaced")
			seen, sequence = 0, now
			commits, now, snapshot = m.db.since(0)
			if now != sequence {
				continue
			}
		}
		time.Sleep(m.upTo(m.x / 2))
		var events []Event
		for _, c := range commits {
			if int(c.key.Resource) != unheard && !(m.deaf && c.key.Resource == 2) {
				events = append(events, Event{Key: c.key, Tx: c.tx, All: m.chance(0.05)})
			}
		}
		seen += len(commits)
		if waits {
			store = number
			events = append(events, m.goBack(position, number, sequence, tables)...)
		}
		if regained {
			m.cache.SetPromise(ResourceID(unheard), true, "")
			tables[ResourceID(unheard)]++
			unheard, regained = -1, false
		}
		m.cache.Apply(events)
		m.cache.Advance(sent, snapshot)
		m.cache.Checkpoint(Position{History: strconv.Itoa(sequence), Seen: snapshot, Digests: tables.named(m.cache)}, store)
	}
}
