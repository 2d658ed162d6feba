package cache

import (
	"context"
	"strings"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"
)

// TestModelExhaustive runs every interleaving of a few actors' steps, one step a
// tick of virtual time, and checks each answer, and at the end that nothing
// stale was left in the tier:
//
//	w  the writer commits, acknowledged immediately
//	s  the stream's rounds: send time, read, Apply, Advance
//	1  a reader's GET; the snapshot of a load; the return of a load
//	2  the same for a second reader of the key
//	l  a lookup in the farthest store: the reading; the return
//
// X is chosen so that some GETs must see the commit and some need not.
func TestModelExhaustive(t *testing.T) {
	plans := []struct {
		name  string
		steps map[byte]int
		x     int // in ticks
		warm  bool
		r     Resource
	}{ // without a store
		{"one load against the stream", map[byte]int{'w': 1, 's': 4, '1': 3}, 3, false, Resource{}},
		{"two loads against the stream", map[byte]int{'w': 1, 's': 4, '1': 3, '2': 3}, 2, false, Resource{}},
		{"two rounds, warm tier", map[byte]int{'w': 2, 's': 8, '1': 1}, 3, true, Resource{}},
		{"two commits against a load", map[byte]int{'w': 2, 's': 4, '1': 3}, 2, true, Resource{}},
		{"two rounds verify", map[byte]int{'w': 1, 's': 8, '1': 1, '2': 1}, 2, true, Resource{Policy: Verify}},
		{"verify, then load", map[byte]int{'w': 2, 's': 4, '1': 3}, 1, true, Resource{Policy: Verify}},
		{"two loads without a promise", map[byte]int{'w': 2, '1': 4, '2': 3}, 2, true, Resource{NoPromise: true}},
		{"a load without a promise against the stream", map[byte]int{'w': 1, 's': 4, '1': 4}, 3, true, Resource{NoPromise: true}},
	}
	for _, p := range plans {
		t.Run(p.name, func(t *testing.T) {
			n, answers := 0, 0
			interleave(p.steps, func(schedule string) bool {
				n++
				synctest.Test(t, func(t *testing.T) { answers += runSchedule(t, schedule, p.x, p.warm, 0, p.r) })
				return !t.Failed()
			})
			t.Logf("%d interleavings, %d answers checked", n, answers)
			if answers < n {
				t.Errorf("only %d answers in %d interleavings", answers, n)
			}
		})
	}
}

// TestModelExhaustiveStores does the same with one and with two stores, of which the
// farthest holds the document and memory does not.
func TestModelExhaustiveStores(t *testing.T) {
	for stores := 1; stores <= 2; stores++ {
		for _, x := range []int{1, 3} {
			n, answers := 0, 0
			interleave(map[byte]int{'w': 1, 's': 4, '1': 1, '2': 1, 'l': 2}, func(schedule string) bool {
				n++
				synctest.Test(t, func(t *testing.T) { answers += runSchedule(t, schedule, x, true, stores, Resource{}) })
				return !t.Failed()
			})
			t.Logf("%d stores: %d interleavings, %d answers checked", stores, n, answers)
			if answers < n {
				t.Errorf("only %d answers in %d interleavings", answers, n)
			}
		}
	}
}

// interleave calls visit with every order of the steps, until it returns false.
func interleave(steps map[byte]int, visit func(string) bool) {
	left := make(map[byte]int)
	total := 0
	for actor, n := range steps {
		left[actor] = n
		total += n
	}
	var order strings.Builder
	var place func(prefix string) bool
	place = func(prefix string) bool {
		if len(prefix) == total {
			return visit(prefix)
		}
		for _, actor := range []byte("12lsw") {
			if left[actor] > 0 {
				left[actor]--
				more := place(prefix + string(actor))
				left[actor]++
				if !more {
					return false
				}
			}
		}
		return true
	}
	place(order.String())
}

// schedule is the state of one interleaving.
type schedule struct {
	t       *testing.T
	order   string
	x       time.Duration
	start   time.Time
	key     Key
	db      *database
	history *history
	cache   *Cache
	answers atomic.Int64

	snapshot chan chan Batch // a load that waits for its snapshot
	pending  []chan Batch    // loads that have one and wait to return
	batches  []Batch

	looking chan chan struct{} // steps of lookups that wait

	sent    time.Duration // of the stream's round
	commits []commit
	seen    int
	at      Snapshot
}

const tick = time.Second

func runSchedule(t *testing.T, order string, x int, warm bool, stores int, r Resource) (answers int) {
	s := &schedule{
		t: t, order: order, x: time.Duration(x) * tick, start: time.Now(), key: Key{0, "k"},
		db: newDatabase(), history: newHistory(), snapshot: make(chan chan Batch, 8), looking: make(chan chan struct{}, 8),
	}
	r.Name, r.Freshness, r.LoadTimeout = "r", s.x, time.Hour
	var err error
	tier := newMapTier()
	s.cache, err = New(Config{
		Resources: []Resource{r},
		Wake:      func() {}, // the schedule says when the stream reports
		Origin: originFunc(func(ctx context.Context, _ ResourceID, _ []string) (Batch, error) {
			answer := make(chan Batch, 1)
			s.snapshot <- answer
			return <-answer, nil
		}),
		Tiers: []Tier{tier},
		Clock: func() time.Duration { return time.Since(s.start) },
	})
	if err != nil {
		t.Fatal(err)
	}
	all := s.attach(stores)
	s.commit()
	s.cache.SetPromise(0, true, "")
	for range 4 {
		s.streamStep()
	}
	if warm {
		s.get()
		synctest.Wait()
		s.takeSnapshot()
		s.giveBack()
		synctest.Wait()
	}
	s.onlyFarthest(tier, all)
	time.Sleep(tick)
	round := map[byte]int{}
	for _, actor := range []byte(order) {
		switch actor {
		case 'w':
			s.commit()
		case 's':
			s.streamStep()
		case 'l':
			s.lookStep()
		default:
			switch round[actor] % 3 {
			case 0:
				s.get()
			case 1:
				s.takeSnapshot()
			case 2:
				s.giveBack()
			}
			round[actor]++
		}
		synctest.Wait()
		time.Sleep(tick)
	}
	s.finish()
	return int(s.answers.Load())
}

func (s *schedule) now() time.Duration { return time.Since(s.start) }

func (s *schedule) commit() {
	version := s.db.commit(s.db.begin(), s.key)
	s.history.ack(s.key, version, s.now())
}

// streamStep does the next quarter of a round.
func (s *schedule) streamStep() {
	switch {
	case s.sent == 0:
		s.sent = s.now() + 1 // 0 means that no round is in progress
	case s.at.XMax == 0:
		s.commits, _, s.at = s.db.since(s.seen)
	case s.commits != nil || s.seen < 0:
		var events []Event
		for _, c := range s.commits {
			events = append(events, Event{Key: c.key, Tx: c.tx})
		}
		s.cache.Apply(events)
		s.seen += len(s.commits)
		s.commits = nil
	default:
		s.cache.Advance(s.sent-1, s.at)
		s.sent, s.at = 0, Snapshot{}
	}
}

// get begins a GET; its answer is checked when it arrives.
func (s *schedule) get() {
	start := s.now()
	// Ends with its answer; synctest waits for it.
	go func() {
		a, err := s.cache.Get(context.Background(), s.key, start)
		if err != nil {
			s.t.Errorf("schedule %s: GET at %v: %v", s.order, start, err)
			return
		}
		s.answers.Add(1)
		got, want := modelVersion(s.t, s.key, a.Doc), s.history.required(s.key, start, s.x)
		if got < want {
			s.t.Errorf("schedule %s: GET at %v returned version %d (source %d), needed %d", s.order, start, got, a.Source, want)
		}
	}()
}

// attach gives the cache stores that are vouched for.
func (s *schedule) attach(n int) (all []*mapStore) {
	for i := range n {
		all = append(all, newMapStore())
		if !s.cache.Attach(all[i], i) {
			s.t.Fatal("a store could not be attached")
		}
	}
	s.cache.Checkpoint(Position{History: "h", Seen: UpTo(0)}, uint64(n))
	return all
}

// onlyFarthest leaves the document in the farthest store, whose lookups wait from now on.
func (s *schedule) onlyFarthest(tier *mapTier, stores []*mapStore) {
	for i, m := range stores {
		tier.Clear()
		if i < len(stores)-1 {
			m.Remove(s.key)
			continue
		}
		wait := func() {
			step := make(chan struct{})
			s.looking <- step
			<-step
		}
		m.before, m.during = wait, wait
	}
}

// lookStep continues the lookup that has waited longest, if any.
func (s *schedule) lookStep() {
	select {
	case step := <-s.looking:
		close(step)
	default:
	}
}

// takeSnapshot lets the next load, if any, read the database.
func (s *schedule) takeSnapshot() {
	select {
	case answer := <-s.snapshot:
		s.pending = append(s.pending, answer)
		s.batches = append(s.batches, s.db.read(0, []string{s.key.ID}))
	default:
	}
}

// giveBack lets the load that read the database first return.
func (s *schedule) giveBack() {
	if len(s.pending) > 0 {
		s.pending[0] <- s.batches[0]
		s.pending, s.batches = s.pending[1:], s.batches[1:]
	}
}

// finish lets all loads return and the stream deliver everything, and then queries
// once more: a document that was stored too late would be served now.
func (s *schedule) finish() {
	drain := func() {
		for range 4 {
			for range 4 {
				s.lookStep()
				synctest.Wait()
			}
			s.takeSnapshot()
			s.giveBack()
			synctest.Wait()
		}
	}
	drain()
	for s.sent != 0 { // the round in progress
		s.streamStep()
	}
	time.Sleep(s.x + tick)
	for range 4 {
		s.streamStep()
	}
	s.get()
	synctest.Wait()
	drain()
	if err := s.cache.Close(); err != nil {
		s.t.Error(err)
	}
	synctest.Wait()
}
