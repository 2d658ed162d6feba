package disk

import (
	"fmt"
	"math/rand/v2"
	"slices"
	"strconv"
	"strings"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	berrors "go.etcd.io/bbolt/errors"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// modelChange is a committed change: of one key, or of all of a resource.
type modelChange struct {
	tx  cache.Tx
	key cache.Key
	all bool
}

// modelLoad is a document that was read and may be put later.
type modelLoad struct {
	key     cache.Key
	seen    cache.Snapshot
	version int // of the key in the data read
	drops   int // of the key when the load began
}

// model is the database, the stream and the part of the cache before a tier; it knows which
// answers of the tier are right.
type model struct {
	t      *testing.T
	random *rand.Rand
	dir    string
	tier   *Tier

	// Atomics: the model and the tier's writer write them.
	fail atomic.Pointer[modelFault] // of the next batch
	dead atomic.Bool                // every batch fails: the process was killed, except that its memory remains

	keys []cache.Key

	// The database. Transactions get their numbers before they commit, in any order.
	next    cache.Tx
	running []cache.Tx
	log     []modelChange // in the order of their commits

	// The stream.
	history int
	heard   int // of log
	told    cache.Snapshot
	ready   bool // told belongs to this history

	// The state in force: the last applied change of each key (one past its index in log),
	// and how often it was purged, flushed or voided, now and at the last complete batch.
	applied        map[cache.Key]int
	drops, durable map[cache.Key]int
	loads          []modelLoad

	gets, hits, reopened, crashed, afterReopen int
}

// modelFault is an error that the next batch fails with.
type modelFault struct {
	err      error
	atCommit bool
}

func newModel(t *testing.T, seed, n uint64) *model {
	m := &model{t: t, random: testkit.Fork(seed, n), dir: t.TempDir(), next: 10,
		applied: make(map[cache.Key]int), drops: make(map[cache.Key]int), durable: make(map[cache.Key]int)}
	for i := range 12 {
		m.keys = append(m.keys, cache.Key{Resource: cache.ResourceID(i % 2), ID: fmt.Sprint("k", i)})
	}
	m.open()
	return m
}

func (m *model) open() {
	m.tier = openTier(m.t, m.dir, func(o *Options) {
		o.MaxQueue = 32 << 10
		o.beforeWrite = func(step string) error {
			if m.dead.Load() {
				return syscall.ENOSPC
			}
			if f := m.fail.Load(); f != nil && (step == "commit") == f.atCommit && m.fail.CompareAndSwap(f, nil) {
				return f.err
			}
			return nil
		}
	})
}

func (m *model) name() string { return fmt.Sprint("history ", m.history) }

func (m *model) snapshot() cache.Snapshot {
	s := cache.Snapshot{XMin: m.next, XMax: m.next, InProgress: slices.Clone(m.running)}
	slices.Sort(s.InProgress)
	if len(s.InProgress) > 0 {
		s.XMin = s.InProgress[0]
	}
	return s
}

func (m *model) key() cache.Key { return m.keys[m.random.IntN(len(m.keys))] }

// commit makes a change visible, of a transaction that began before or of a new one.
func (m *model) commit() {
	tx := m.next
	if n := len(m.running); n > 0 && m.random.IntN(2) == 0 {
		i := m.random.IntN(n)
		tx = m.running[i]
		m.running = slices.Delete(m.running, i, i+1)
	} else {
		m.next++
	}
	m.log = append(m.log, modelChange{tx: tx, key: m.key(), all: m.random.IntN(40) == 0})
}

// version is one past the index in the log of the newest change of the key.
func (m *model) version(key cache.Key) int {
	for i := len(m.log) - 1; i >= 0; i-- {
		if c := m.log[i]; c.key == key || c.all && c.key.Resource == key.Resource {
			return i + 1
		}
	}
	return 0
}

func (m *model) load() {
	key := m.key()
	m.loads = append(m.loads, modelLoad{key: key, seen: m.snapshot(), version: m.version(key), drops: m.drops[key]})
	if len(m.loads) > 3 || m.random.IntN(3) > 0 {
		m.put()
	}
}

// put ends a load, as cache.store does: only if no known change is missing from it.
func (m *model) put() {
	if len(m.loads) == 0 {
		return
	}
	i := m.random.IntN(len(m.loads))
	l := m.loads[i]
	m.loads = slices.Delete(m.loads, i, i+1)
	if l.drops != m.drops[l.key] {
		return
	}
	for _, c := range m.log[:m.heard] {
		if (c.key == l.key || c.all && c.key.Resource == l.key.Resource) && !l.seen.Sees(c.tx) {
			return
		}
	}
	body := fmt.Sprintf("%s|%d|%d|%s", l.key.ID, l.version, m.drops[l.key], strings.Repeat("x", m.random.IntN(3000)))
	m.tier.Put(l.key, cache.NewDocument([]byte(body), l.seen, time.Minute))
}

// apply is what the stream does with a change.
func (m *model) apply(place int) {
	c := m.log[place]
	if !c.all {
		m.tier.Invalidate(c.key, c.tx)
		m.applied[c.key] = max(m.applied[c.key], place+1)
		return
	}
	m.tier.Flush(c.key.Resource)
	for _, key := range m.keys {
		if key.Resource == c.key.Resource {
			m.applied[key] = max(m.applied[key], place+1)
			m.drops[key]++
		}
	}
}

// hear is a poll of the stream.
func (m *model) hear() {
	m.told, m.ready = m.snapshot(), true
	for ; m.heard < len(m.log); m.heard++ {
		m.apply(m.heard)
	}
	if m.random.IntN(4) > 0 {
		m.checkpoint()
	}
}

func (m *model) checkpoint() {
	if m.ready {
		m.tier.Checkpoint(cache.Position{History: m.name(), Seen: m.told, Digests: map[string]string{"depts": "a"}})
	}
}

func (m *model) purge() {
	key := m.key()
	m.drops[key]++
	m.tier.Remove(key)
}

func (m *model) flush() {
	r := cache.ResourceID(m.random.IntN(2))
	for _, key := range m.keys {
		if key.Resource == r {
			m.drops[key]++
		}
	}
	m.tier.Flush(r)
}

// void begins another history: nothing from before is valid, and numbers may go back.
func (m *model) void() {
	m.history++
	m.next -= cache.Tx(m.random.IntN(int(m.next / 2)))
	m.running, m.log, m.heard, m.ready, m.loads = nil, nil, 0, false, nil
	m.forget()
}

func (m *model) forget() {
	m.tier.Void()
	clear(m.applied)
	for _, key := range m.keys {
		m.drops[key]++
	}
}

func (m *model) sync() {
	err := m.tier.Sync(m.t.Context())
	if err == nil {
		for k, n := range m.drops {
			m.durable[k] = n
		}
	} else if m.fail.Load() != nil {
		m.t.Errorf("sync: %v", err)
	}
}

func (m *model) reopen(crash bool) {
	m.reopened++
	m.fail.Store(nil)
	if crash {
		m.crashed++
		m.dead.Store(true)
		m.tier.Close()
		m.dead.Store(false)
		// A purge that was not made durable is lost; all others are applied again.
		for k := range m.drops {
			m.drops[k] = m.durable[k]
		}
	} else if err := m.tier.Close(); err != nil {
		m.t.Errorf("close: %v", err)
	}
	m.loads = nil
	m.open()
	p := m.tier.Position()
	if p.History != m.name() {
		if p.History == "" {
			for _, key := range m.keys {
				if s, _ := ask(m.tier, key); s.Body != nil {
					m.t.Errorf("%v is there without a position", key)
				}
			}
		}
		m.forget()
		m.heard, m.ready = len(m.log), false
		return
	}
	for _, key := range m.keys {
		if s, _ := ask(m.tier, key); s.XMin > p.Seen.XMax {
			m.t.Errorf("%v, read in a snapshot that begins at %d, is ahead of the position %d", key, s.XMin, p.Seen.XMax)
		}
	}
	for i, c := range m.log {
		if !p.Seen.Sees(c.tx) {
			m.apply(i)
		}
	}
	m.told, m.heard, m.ready = m.snapshot(), len(m.log), true
	for _, key := range m.keys {
		before := m.hits
		m.get(key)
		m.afterReopen += m.hits - before
	}
}

// get queries the tier and checks the answer.
func (m *model) get(key cache.Key) {
	m.gets++
	s, err := ask(m.tier, key)
	if err != nil {
		m.t.Errorf("%v: %v", key, err)
	}
	if s.Body == nil {
		return
	}
	m.hits++
	f := strings.Split(string(s.Body), "|")
	version, _ := strconv.Atoi(f[1])
	drops, _ := strconv.Atoi(f[2])
	switch {
	case f[0] != key.ID:
		m.t.Errorf("requested %v, got %s", key, f[0])
	case version < m.applied[key]:
		m.t.Errorf("%v: version %d, and change %d had been applied", key, version, m.applied[key])
	case drops < m.drops[key]:
		m.t.Errorf("%v: a document from before drop %d", key, m.drops[key])
	}
}

func (m *model) step() {
	switch n := m.random.IntN(100); {
	case n < 14:
		m.commit()
	case n < 20:
		if len(m.running) < 4 {
			m.running = append(m.running, m.next)
			m.next++
		}
	case n < 40:
		m.load()
	case n < 44:
		m.put()
	case n < 56:
		m.hear()
	case n < 58:
		m.checkpoint()
	case n < 60:
		m.purge()
	case n < 61:
		m.flush()
	case n < 62 && m.random.IntN(4) == 0:
		m.void()
	case n < 70:
		m.sync()
	case n < 72:
		err := []error{syscall.ENOSPC, berrors.ErrMaxSizeReached, errInjected, syscall.EIO}[m.random.IntN(4)]
		m.fail.Store(&modelFault{err, m.random.IntN(2) == 0})
		m.sync()
	case n < 73 && m.random.IntN(4) == 0:
		m.tier.distrust(errDamaged)
	case n < 75:
		m.reopen(m.random.IntN(2) == 0)
	default:
		m.get(m.key())
	}
}

// Random schedules against the model. No answer is older than the applied changes, from before a
// drop, or of another key; documents found after a restart are not ahead of the position.
func TestModelSoak(t *testing.T) {
	seed := testkit.Seed(t)
	var gets, hits, crashed, afterReopen int
	began := time.Now()
	length := testkit.SoakTime(t, 4*time.Second)
	for n := uint64(0); n == 0 || time.Since(began) < length && !t.Failed(); n++ {
		m := newModel(t, seed, n)
		for range 1500 {
			m.step()
			if t.Failed() {
				t.Fatalf("schedule %d", n)
			}
		}
		m.reopen(false)
		if err := m.tier.Close(); err != nil {
			t.Error(err)
		}
		if c, err := Check(t.Context(), m.dir, func(int64, int64) {}); err != nil || !c.OK() {
			t.Errorf("schedule %d: %+v, %v", n, c, err)
		}
		gets, hits, crashed, afterReopen = gets+m.gets, hits+m.hits, crashed+m.crashed, afterReopen+m.afterReopen
	}
	t.Logf("%d gets, %d found; %d crashes; %d found right after the file was opened again", gets, hits, crashed, afterReopen)
	if hits < gets/10 || afterReopen < crashed/2 {
		t.Errorf("%d of %d found, %d after %d crashes: nothing was proved", hits, gets, afterReopen, crashed)
	}
}
