package limit

import (
	"math"
	"math/rand/v2"
	"net/netip"
	"runtime"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// bucket is a textbook token bucket, in nanoseconds of refill.
type bucket struct {
	capacity, cost, level int64
	at                    time.Duration
}

func (b *bucket) take(now time.Duration, n int) (wait time.Duration, ok bool) {
	if now > b.at {
		b.level = int64(min(float64(b.capacity), float64(b.level)+float64(now-b.at)))
		b.at = now
	}
	need := int64(n) * b.cost
	switch {
	case need > b.capacity:
		return Never, false
	case need > b.level:
		return time.Duration(need - b.level), false
	}
	b.level -= need
	return 0, true
}

// Random schedules of several keys get the same decisions as from a token bucket
// for each, and a request that waits as long as returned is allowed, but not a
// nanosecond earlier.
func TestModel(t *testing.T) {
	seed := testkit.Seed(t)
	for round := range 300 {
		rng := testkit.Fork(seed, uint64(round))
		interval := []int64{1, 7, 1000, 1e6, 10e6, 1e9, 60e9}[rng.IntN(7)]
		burst := 1 + rng.IntN(1<<rng.IntN(8))
		l := New(Config{Rate: 1e9 / float64(interval), Burst: burst, MaxEntries: 64 << rng.IntN(6)})
		keys := make([]uint64, 1+rng.IntN(16))
		models := make([]*bucket, len(keys))
		for i := range keys {
			keys[i] = uint64(i) * []uint64{1, 1 << 32, rng.Uint64()}[rng.IntN(3)]
			for j := range i { // the same key has the same bucket
				if keys[j] == keys[i] {
					models[i] = models[j]
				}
			}
			if models[i] == nil {
				models[i] = &bucket{capacity: interval * int64(burst), cost: interval, level: interval * int64(burst)}
			}
		}
		var now time.Duration
		var refused int64
		for step := range 1000 {
			switch rng.IntN(6) {
			case 0, 1: // the clock stands still
			case 2:
				now += time.Duration(rng.Int64N(2*interval + 1))
			case 3:
				now++
			case 4:
				now += time.Duration(rng.Int64N(2*interval*int64(burst) + 1))
			case 5:
				if rng.IntN(50) == 0 {
					now += 1000 * time.Hour
				}
			}
			i, n := rng.IntN(len(keys)), 1+rng.IntN(burst+burst/4+1)
			gotWait, gotOK := l.Allow(keys[i], now, n)
			wait, ok := models[i].take(now, n)
			if gotOK != ok || gotWait != wait {
				t.Fatalf("round %d (interval %d, burst %d) step %d, key %d, n %d at %d: got %v, %v; want %v, %v",
					round, interval, burst, step, i, n, now, gotWait, gotOK, wait, ok)
			}
			if ok {
				continue
			}
			refused++
			if wait == Never || rng.IntN(2) == 0 {
				continue
			}
			if w, ok := l.Allow(keys[i], now+wait-1, n); ok || w != 1 {
				t.Fatalf("round %d step %d: a nanosecond early: got %v, %v; want 1ns, false", round, step, w, ok)
			}
			refused++
			now += wait
			if w, ok := l.Allow(keys[i], now, n); !ok {
				t.Fatalf("round %d step %d: after waiting %v: still refused, for %v", round, step, wait, w)
			}
			models[i].take(now, n)
		}
		if got := l.Refused(); got != refused {
			t.Fatalf("round %d: %d refused, want %d", round, got, refused)
		}
		if got := l.Evicted(); got != 0 {
			t.Fatalf("round %d: %d evicted of %d keys", round, got, len(keys))
		}
	}
}

func TestConfig(t *testing.T) {
	for _, test := range []struct {
		name  string
		cfg   Config
		burst int
		// interval is what the first request after the burst waits for.
		interval time.Duration
	}{
		{"plain", Config{Rate: 100, Burst: 200}, 200, 10 * time.Millisecond},
		{"burst of a second", Config{Rate: 100}, 100, 10 * time.Millisecond},
		{"less than one a second", Config{Rate: 0.1}, 1, 10 * time.Second},
		{"a third", Config{Rate: 3, Burst: 1}, 1, 333333333},
		{"negative burst", Config{Rate: 2.5, Burst: -1}, 2, 400 * time.Millisecond},
		{"a table of one", Config{Rate: 10, Burst: 5, MaxEntries: 1}, 5, 100 * time.Millisecond},
		{"negative table", Config{Rate: 10, Burst: 5, MaxEntries: -1}, 5, 100 * time.Millisecond},
		{"as fast as it gets", Config{Rate: math.Inf(1), Burst: 10}, 10, 1},
		{"as slow as it gets", Config{Rate: math.SmallestNonzeroFloat64, Burst: 10}, 2, horizon / 2},
		{"more than 73 years of burst", Config{Rate: 1e-9, Burst: math.MaxInt}, 2, 1e18},
	} {
		t.Run(test.name, func(t *testing.T) {
			l := New(test.cfg)
			for i := range test.burst {
				if wait, ok := l.Allow(1, time.Hour, 1); !ok {
					t.Fatalf("request %d: refused for %v, want the burst of %d allowed", i, wait, test.burst)
				}
			}
			if wait, ok := l.Allow(1, time.Hour, 1); ok || wait != test.interval {
				t.Errorf("after the burst: got %v, %v; want %v, false", wait, ok, test.interval)
			}
			if wait, ok := l.Allow(2, time.Hour, test.burst+1); ok || wait != Never {
				t.Errorf("more than the burst: got %v, %v; want Never, false", wait, ok)
			}
			if wait, ok := l.Allow(2, time.Hour, test.burst); !ok {
				t.Errorf("the whole burst at once, after the greater was refused: refused for %v", wait)
			}
			if l.Refused() != 2 || l.Entries() != 2 {
				t.Errorf("got %d refused, %d entries; want 2 and 2", l.Refused(), l.Entries())
			}
		})
	}
}

func TestNone(t *testing.T) {
	for _, rate := range []float64{0, -1, math.NaN(), math.Inf(-1)} {
		l := New(Config{Rate: rate, Burst: 1})
		if l != nil {
			t.Fatalf("rate %v: got a limiter, want nil", rate)
		}
		for range 10 {
			if wait, ok := l.Allow(1, 0, math.MaxInt); !ok || wait != 0 {
				t.Errorf("nil limiter: got %v, %v; want it allowed", wait, ok)
			}
		}
		if l.Refused() != 0 || l.Entries() != 0 || l.Evicted() != 0 {
			t.Error("nil limiter: figures are not 0")
		}
	}
}

func TestClock(t *testing.T) {
	l := New(Config{Rate: 10, Burst: 3})
	allow := func(now time.Duration, n int, wait time.Duration) {
		t.Helper()
		got, ok := l.Allow(7, now, n)
		if got != wait || ok != (wait == 0) {
			t.Errorf("at %v: got %v, %v; want %v", now, got, ok, wait)
		}
	}
	allow(time.Second, 3, 0)
	allow(time.Second, 1, 100*time.Millisecond)
	allow(0, 1, 1100*time.Millisecond) // back: what was charged stays charged
	allow(-time.Hour, 1, 1100*time.Millisecond)
	allow(math.MinInt64, 1, 1100*time.Millisecond)
	allow(1100*time.Millisecond, 1, 0)
	allow(100*365*24*time.Hour, 3, 0) // a jump fills the bucket, and no more than that
	allow(100*365*24*time.Hour, 1, 100*time.Millisecond)
	l = New(Config{Rate: 10, Burst: 3})
	allow(math.MaxInt64, 3, 0)
	allow(math.MaxInt64, 1, 100*time.Millisecond)
	allow(math.MaxInt64, 0, 0)
	allow(math.MaxInt64, -5, 0)
	allow(math.MaxInt64, math.MaxInt, Never)
}

// A flood of addresses (see race_off_test.go for how many) fills the table several times over: clients
// within their limit are not affected, and others gain nothing.
func TestFlood(t *testing.T) {
	const entries = flood / 100
	rng := testkit.Rand(t)
	l := New(Config{Rate: 1, Burst: 10, MaxEntries: entries})
	const innocent, greedy = 1, 2
	model := &bucket{capacity: 10e9, cost: 1e9, level: 10e9}
	var now time.Duration
	for i := range flood {
		now += 10 * time.Second / flood
		if wait, ok := l.Allow(rng.Uint64(), now, 1); !ok {
			t.Fatalf("address %d of the flood, its first request: refused for %v", i, wait)
		}
		if i%(flood/10_000) == 0 { // 1000 per second, of 1
			gotWait, got := l.Allow(greedy, now, 1)
			if wait, want := model.take(now, 1); got != want || gotWait != wait {
				t.Fatalf("%v into the flood, the greedy client: got %v, %v; want %v, %v", now, gotWait, got, wait, want)
			}
		}
		if i%(flood/10) == 0 {
			if wait, ok := l.Allow(innocent, now, 1); !ok {
				t.Fatalf("%v into the flood, the innocent client: refused for %v", now, wait)
			}
		}
	}
	if l.Evicted() < flood/2 {
		t.Errorf("%d buckets evicted: this was no flood", l.Evicted())
	}
	if got := l.Entries(); got < entries || got > 2*entries {
		t.Errorf("%d entries in a full table, want %d to %d", got, entries, 2*entries)
	}
	now += time.Minute
	for range flood / 1000 { // one that reaches every shard
		l.Allow(rng.Uint64(), now, 1)
	}
	if got := l.Entries(); got > entries/10 {
		t.Errorf("%d entries a minute later, want the flood gone", got)
	}
}

// A newcomer takes a free slot of the emptier set, or the least debt of both.
func TestFind(t *testing.T) {
	const now = 1000
	debts := func(all int64, slot int, one int64) (full [ways]int64) {
		for i := range full {
			full[i] = all
		}
		full[slot] = one
		return full
	}
	for _, test := range []struct {
		name      string
		a, b      [ways]int64
		set, slot int
		evicted   int64
	}{
		{"the first has the least debt", debts(5000, 3, 2000), debts(5000, 6, 2001), 0, 3, 1},
		{"the second has the least debt", debts(5000, 3, 2001), debts(5000, 6, 2000), 1, 6, 1},
		{"deep debts in the first", debts(5000, 0, 5000), debts(2000, 6, 1999), 1, 6, 1},
		{"one free in the first", debts(5000, 7, now), debts(2000, 6, 1001), 0, 7, 0},
		{"one free in the second", debts(2000, 7, 1001), debts(5000, 0, now), 1, 0, 0},
		{"more free in the second", debts(5000, 2, 0), debts(0, 2, 5000), 1, 0, 0},
		{"more free in the first", debts(0, 2, 5000), debts(5000, 2, 0), 0, 0, 0},
	} {
		t.Run(test.name, func(t *testing.T) {
			s := shard{sets: []set{{full: test.a}, {full: test.b}}}
			const h = 1 << 31 // the first set by its high bits, the second by its low half's
			got, fresh := s.find(h, 7, now)
			if want := &s.sets[test.set].full[test.slot]; got != want || !fresh || s.evicted != test.evicted {
				t.Errorf("got %d, fresh %v, %d evicted; want %d, true, %d", *got, fresh, s.evicted, *want, test.evicted)
			}
			if again, fresh := s.find(h, 7, now); again != got || fresh {
				t.Errorf("again: got %d, fresh %v; want the same slot", *again, fresh)
			}
		})
	}
}

// The promised number of keys is tracked, all of them exactly.
func TestFullTable(t *testing.T) {
	for _, size := range []int{100, 1000, 5000, defaultEntries} {
		rng := testkit.Rand(t)
		l := New(Config{Rate: 1, Burst: 1, MaxEntries: size})
		keys := make([]uint64, size)
		for i := range keys {
			keys[i] = rng.Uint64()
			l.Allow(keys[i], time.Second, 1)
		}
		forgotten := 0
		for _, k := range keys {
			if _, ok := l.Allow(k, time.Second, 1); ok {
				forgotten++
			}
		}
		// A key whose 16 slots are all taken is possible, and rare.
		if forgotten > size/1000+2 {
			t.Errorf("%d of %d keys evicted, want at most 1 in 1000", forgotten, size)
		}
		t.Logf("%d entries: %d forgotten", size, forgotten)
	}
}

// Keys that are not hashes (counters, multiples, one bit) spread as well.
func TestPoorKeys(t *testing.T) {
	for name, key := range map[string]func(i uint64) uint64{
		"counter": func(i uint64) uint64 { return i },
		"low":     func(i uint64) uint64 { return i << 40 },
		"high":    func(i uint64) uint64 { return i * 1024 },
	} {
		l := New(Config{Rate: 1, Burst: 1, MaxEntries: 10_000})
		for i := range uint64(10_000) {
			l.Allow(key(i), 0, 1)
		}
		if l.Evicted() > 10 {
			t.Errorf("%s: %d of 10000 evicted, want nearly none", name, l.Evicted())
		}
	}
}

func TestMemory(t *testing.T) {
	const entries = 1 << 17
	var before, after runtime.MemStats
	runtime.GC()
	runtime.ReadMemStats(&before)
	l := New(Config{Rate: 1, MaxEntries: entries})
	rng := testkit.Rand(t)
	for range 2 * entries {
		l.Allow(rng.Uint64(), 0, 1)
	}
	runtime.GC()
	runtime.ReadMemStats(&after)
	each := float64(after.HeapAlloc-before.HeapAlloc) / entries
	t.Logf("%.1f bytes an entry", each)
	if each > 22 {
		t.Errorf("%.1f bytes an entry, want 22 at most", each)
	}
	runtime.KeepAlive(l)
}

// Many goroutines at one moment get the burst together, and not one more.
func TestConcurrent(t *testing.T) {
	const goroutines, each, keys, burst = 8, 4000, 5, 1000
	l := New(Config{Rate: 1, Burst: burst, MaxEntries: 64})
	var allowed [keys]atomic.Int64
	var wg sync.WaitGroup
	for range goroutines {
		wg.Go(func() { // ends with its loop, awaited below
			for i := range each {
				if _, ok := l.Allow(uint64(i%keys), time.Second, 1); ok {
					allowed[i%keys].Add(1)
				}
				if i%1000 == 0 {
					l.Entries()
					l.Refused()
				}
			}
		})
	}
	wg.Wait()
	for k := range allowed {
		if got := allowed[k].Load(); got != burst {
			t.Errorf("key %d: %d allowed, want %d", k, got, burst)
		}
	}
	if got, want := l.Refused(), int64(goroutines*each-keys*burst); got != want {
		t.Errorf("%d refused, want %d", got, want)
	}
}

// Charge brings a key into debt by at most one burst, and Within checks without charging.
func TestCharge(t *testing.T) {
	l := New(Config{Rate: 1, Burst: 10})
	for _, step := range []struct {
		at     time.Duration
		charge int
		wait   time.Duration
	}{
		{0, 9, 0}, {0, 1, time.Second}, {0, 5, 6 * time.Second}, {6 * time.Second, 0, 0},
		{6 * time.Second, 1_000_000_000, 11 * time.Second}, {16 * time.Second, 0, time.Second}, {17 * time.Second, 0, 0},
	} {
		l.Charge(7, step.at, step.charge)
		for range 3 {
			if wait, ok := l.Within(7, step.at); wait != step.wait || ok != (step.wait == 0) {
				t.Fatalf("after %d at %v: wait %v, %t; want %v", step.charge, step.at, wait, ok, step.wait)
			}
		}
		if wait, ok := l.Within(8, step.at); !ok {
			t.Fatalf("another key waits %v", wait)
		}
	}
	if n := l.Refused(); n != 12 {
		t.Errorf("%d refusals are counted, want 12", n)
	}
	var none *Limiter
	none.Charge(1, 0, 1)
	if _, ok := none.Within(1, 0); !ok {
		t.Error("no limiter limits")
	}
}

func TestAllocations(t *testing.T) {
	l := New(Config{Rate: 1, MaxEntries: 100})
	addr4, addr6 := netip.MustParseAddr("192.0.2.1"), netip.MustParseAddr("2001:db8::1")
	key := uint64(0)
	if got := testing.AllocsPerRun(1000, func() {
		l.Allow(ClientKey(addr4), 0, 1)
		l.Allow(ClientKey(addr6), 0, 1)
		l.Allow(key, 0, 1)
		key++
	}); got != 0 {
		t.Errorf("got %v allocations, want 0", got)
	}
}

func TestClientKey(t *testing.T) {
	for _, test := range []struct {
		a, b string
		same bool
	}{
		{"192.0.2.1", "192.0.2.1", true},
		{"192.0.2.1", "::ffff:192.0.2.1", true},
		{"192.0.2.1", "192.0.2.2", false},
		{"192.0.2.1", "::192.0.2.1", false},
		{"2001:db8:1:2::1", "2001:db8:1:2:ffff:ffff:ffff:ffff", true},
		{"2001:db8:1:2::1", "2001:db8:1:3::1", false},
		{"fe80::1%eth0", "fe80::1%eth1", true},
		{"::", "0.0.0.0", false},
		{"", "", true},
		{"", "::", false},
		{"", "0.0.0.0", false},
	} {
		var a, b netip.Addr
		if test.a != "" {
			a = netip.MustParseAddr(test.a)
		}
		if test.b != "" {
			b = netip.MustParseAddr(test.b)
		}
		if got := ClientKey(a) == ClientKey(b); got != test.same || ClientKey(a) == 0 {
			t.Errorf("%s and %s: same key %v (%d), want %v", test.a, test.b, got, ClientKey(a), test.same)
		}
	}
}

func BenchmarkAllow(b *testing.B) {
	for _, bench := range []struct {
		name string
		keys int
		rate float64
	}{
		{"one key allowed", 1, 1e9},
		{"one key refused", 1, 1e-9},
		{"1000 keys", 1000, 1e6},
		{"100000 keys", 100_000, 1e6},
		{"flood", 10_000_000, 0.001},
	} {
		keys := make([]uint64, bench.keys)
		for i := range keys {
			keys[i] = rand.Uint64()
		}
		run := func(l *Limiter, more func() bool) {
			i := rand.IntN(len(keys))
			for more() {
				if i++; i >= len(keys) {
					i = 0
				}
				l.Allow(keys[i], time.Duration(i), 1)
			}
		}
		b.Run(bench.name, func(b *testing.B) {
			b.ReportAllocs()
			run(New(Config{Rate: bench.rate, Burst: 1}), b.Loop)
		})
		b.Run(bench.name+", all cores", func(b *testing.B) {
			l := New(Config{Rate: bench.rate, Burst: 1})
			b.RunParallel(func(pb *testing.PB) { run(l, pb.Next) })
		})
	}
	addr := netip.MustParseAddr("2001:db8::1")
	b.Run("ClientKey", func(b *testing.B) {
		for b.Loop() {
			ClientKey(addr)
		}
	})
}
