package freshness

import (
	"fmt"
	"math/rand/v2"
	"os/exec"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

const (
	bound = time.Second
	sec   = int64(time.Second)
)

// log builds a checker from a script of writes and reads at given times.
type log struct {
	c *Checker
	w *Writer
	r *Reader
}

func newLog() *log {
	c := New(Options{Bound: bound})
	return &log{c, c.Writer(), c.Reader()}
}

func (l *log) wrote(version uint64, begun, acked int64) {
	l.w.begin("k", version, begun, false).ackAt(acked)
}
func (l *log) deleted(version uint64, begun, acked int64) {
	l.w.begin("k", version, begun, true).ackAt(acked)
}
func (l *log) got(version uint64, start, end int64) {
	l.r.add(read{start: start, end: end, version: version, key: l.c.id("k")})
}
func (l *log) gone(start, end int64) {
	l.r.add(read{start: start, end: end, key: l.c.id("k"), outcome: missing})
}

func TestJudgement(t *testing.T) {
	for _, c := range []struct {
		name string
		do   func(*log)
		want Report // the four counts of violations, and Outdated with Max
	}{
		{"the newest version", func(l *log) { l.wrote(1, 1*sec, 2*sec); l.got(1, 9*sec, 9*sec) }, Report{}},
		{"an old version before the acknowledgement", func(l *log) {
			l.wrote(1, 1*sec, 2*sec)
			l.wrote(2, 3*sec, 9*sec)
			l.got(1, 8*sec, 20*sec) // a slow answer counts from its start
		}, Report{}},
		{"a version that is not acknowledged yet", func(l *log) {
			l.wrote(1, 1*sec, 2*sec)
			l.wrote(2, 3*sec, 9*sec)
			l.got(2, 4*sec, 5*sec)
		}, Report{}},
		{"an old version exactly at the bound", func(l *log) {
			l.wrote(1, 1*sec, 1*sec)
			l.wrote(2, 2*sec, 3*sec)
			l.got(1, 4*sec, 4*sec)
		}, Report{Outdated: 1, Max: bound}},
		{"an old version past the bound", func(l *log) {
			l.wrote(1, 1*sec, 1*sec)
			l.wrote(2, 2*sec, 3*sec)
			l.got(1, 4*sec+1, 5*sec)
		}, Report{Stale: 1, Outdated: 1, Max: bound + 1}},
		{"the first newer version counts, not the last", func(l *log) {
			l.wrote(1, 1*sec, 1*sec)
			l.wrote(2, 2*sec, 2*sec)
			l.wrote(3, 9*sec, 9*sec)
			l.got(1, 8*sec, 8*sec)
		}, Report{Stale: 1, Outdated: 1, Max: 6 * time.Second}},
		{"a later version acknowledged earlier", func(l *log) {
			l.wrote(1, 1*sec, 1*sec)
			l.wrote(2, 2*sec, 20*sec) // its answer came late
			l.wrote(3, 3*sec, 4*sec)
			l.got(1, 6*sec, 6*sec)
		}, Report{Stale: 1, Outdated: 1, Max: 2 * time.Second}},
		{"an unacknowledged version is seen", func(l *log) {
			l.wrote(1, 1*sec, 1*sec)
			l.wrote(2, 2*sec, never)
			l.got(2, 50*sec, 50*sec)
		}, Report{}},
		{"an unacknowledged version is not seen", func(l *log) {
			l.wrote(1, 1*sec, 1*sec)
			l.wrote(2, 2*sec, never)
			l.got(1, 50*sec, 50*sec)
		}, Report{}},
		{"an unacknowledged version long after the next one", func(l *log) {
			l.wrote(1, 1*sec, never)
			l.wrote(2, 2*sec, 3*sec)
			l.got(1, 50*sec, 50*sec)
		}, Report{Stale: 1, Outdated: 1, Max: 47 * time.Second}},
		{"a version that was never written", func(l *log) { l.wrote(1, 1*sec, 1*sec); l.got(7, 2*sec, 2*sec) }, Report{Unknown: 1}},
		{"version 0 as a document", func(l *log) { l.wrote(1, 1*sec, 1*sec); l.got(0, 2*sec, 2*sec) }, Report{Unknown: 1}},
		{"a document where the row was deleted", func(l *log) { l.deleted(1, 1*sec, 1*sec); l.got(1, 2*sec, 2*sec) }, Report{Unknown: 1}},
		{"a version from the future", func(l *log) { l.wrote(1, 5*sec, 6*sec); l.got(1, 2*sec, 3*sec) }, Report{Future: 1}},
		{"missing before the first write", func(l *log) { l.wrote(1, 5*sec, 6*sec); l.gone(2*sec, 3*sec) }, Report{}},
		{"missing long after the first write", func(l *log) { l.wrote(1, 5*sec, 6*sec); l.gone(9*sec, 9*sec) }, Report{Stale: 1, Outdated: 1, Max: 3 * time.Second}},
		{"missing after a deletion", func(l *log) {
			l.wrote(1, 1*sec, 1*sec)
			l.deleted(2, 2*sec, 2*sec)
			l.gone(9*sec, 9*sec)
		}, Report{}},
		{"missing during a deletion", func(l *log) {
			l.wrote(1, 1*sec, 1*sec)
			l.deleted(2, 8*sec, 12*sec)
			l.gone(7*sec, 9*sec)
		}, Report{}},
		{"missing long after the row came back", func(l *log) {
			l.deleted(1, 1*sec, 1*sec)
			l.wrote(2, 2*sec, 3*sec)
			l.deleted(3, 20*sec, 21*sec)
			l.gone(9*sec, 9*sec)
		}, Report{Stale: 1, Outdated: 1, Max: 6 * time.Second}},
		{"a document long after the deletion", func(l *log) {
			l.wrote(1, 1*sec, 1*sec)
			l.deleted(2, 2*sec, 3*sec)
			l.got(1, 9*sec, 9*sec)
		}, Report{Stale: 1, Outdated: 1, Max: 6 * time.Second}},
		{"sparse versions, logged out of order", func(l *log) {
			l.wrote(500, 5*sec, 5*sec)
			l.wrote(7, 1*sec, 1*sec)
			l.got(7, 3*sec, 3*sec)
			l.got(500, 9*sec, 9*sec)
			l.got(7, 9*sec, 9*sec)
		}, Report{Stale: 1, Outdated: 1, Max: 4 * time.Second}},
	} {
		t.Run(c.name, func(t *testing.T) {
			l := newLog()
			c.do(l)
			got, err := l.c.Check()
			if err != nil {
				t.Fatal(err)
			}
			same := got.Stale == c.want.Stale && got.Unknown == c.want.Unknown && got.Future == c.want.Future &&
				got.Torn == c.want.Torn && got.Outdated == c.want.Outdated && got.Max == c.want.Max
			if !same {
				t.Errorf("got  %v\nwant %v", got, c.want)
			}
			if bad := got.Violations(); (got.Err() != nil) != (bad > 0) || len(got.Examples) != bad {
				t.Errorf("%d violations, Err %v, %d examples", bad, got.Err(), len(got.Examples))
			}
		})
	}
}

func TestPublicLogs(t *testing.T) {
	c := New(Options{Bound: bound})
	w, r := c.Writer(), c.Reader()
	w.Initial("a", 10)
	w.Begin("a", 11).Acked()
	w.BeginDelete("b", 1) // never acknowledged: the writer was killed
	start := Now()
	r.Found("a", start, 11, 11, 11)
	r.Found("a", start, 11, 11, 10) // one child has the previous state
	r.Missing("b", start)
	r.Failed("a", start)
	got, err := c.Check()
	if err != nil {
		t.Fatal(err)
	}
	if got.Reads != 4 || got.Missing != 1 || got.Failed != 1 || got.Writes != 3 || got.Unacked != 1 || got.Torn != 1 || got.Violations() != 1 {
		t.Errorf("got %v", got)
	}
	if err := got.Err(); err == nil || !strings.Contains(err.Error(), "parts of another state") {
		t.Errorf("Err = %v", err)
	}
}

func TestTornHook(t *testing.T) {
	// Children are written after their parent, so a child may be one version behind.
	c := New(Options{Bound: bound, Torn: func(version uint64, parts []uint64) bool { return parts[0]+1 < version }})
	c.Writer().Initial("k", 5)
	r := c.Reader()
	r.Found("k", Now(), 5, 4)
	r.Found("k", Now(), 5, 3)
	if got, err := c.Check(); err != nil || got.Torn != 1 {
		t.Errorf("%v, %v; want one torn read", got, err)
	}
}

func TestVersionLoggedTwice(t *testing.T) {
	for _, version := range []uint64{0, 3} {
		l := newLog()
		l.wrote(3, 1, 1)
		l.wrote(version, 2, 2)
		if _, err := l.c.Check(); err == nil || !strings.Contains(err.Error(), `key "k"`) {
			t.Errorf("version %d again: error %v, want one that names the key", version, err)
		}
	}
}

// A million reads of a simulated cache with a known delay are checked against an oracle that is too
// simple to be wrong in the same way. Then late answers are inserted, each of which must be
// counted.
func TestMillionEntries(t *testing.T) {
	const keys, versions, reads = 200, 500, 1_000_000
	rnd := testkit.Rand(t)
	c := New(Options{Bound: bound})
	acks := make([][]int64, keys)
	w := c.Writer()
	for k := range keys {
		for v := range versions {
			at := int64(v)*sec + rnd.Int64N(sec/2)
			w.begin(strconv.Itoa(k), uint64(v+1), at, false).ackAt(at + sec/10)
			acks[k] = append(acks[k], at+sec/10)
		}
	}
	r := c.Reader()
	wantStale := 0
	for range reads {
		k, start := rnd.IntN(keys), 2*sec+rnd.Int64N((versions-2)*sec)
		lag := rnd.Int64N(sec * 9 / 10)
		if rnd.IntN(1000) == 0 {
			lag = 2*sec + rnd.Int64N(sec)
		}
		v := newestAckedBefore(acks[k], start-lag)
		if v < versions && v > 0 && acks[k][v] < start-sec {
			wantStale++
		}
		if v == 0 {
			continue
		}
		r.add(read{start: start, end: start, version: uint64(v), key: c.id(strconv.Itoa(k))})
	}
	begin := time.Now()
	got, err := c.Check()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v in %v", got, time.Since(begin))
	if wantStale == 0 || got.Stale != wantStale || got.Violations() != wantStale {
		t.Errorf("%d stale of %d violations, want exactly %d", got.Stale, got.Violations(), wantStale)
	}
	if len(got.Examples) != maxExamples {
		t.Errorf("%d examples, want %d", len(got.Examples), maxExamples)
	}
}

// newestAckedBefore returns the last version, from 1, that was acknowledged by t, or 0 if there is
// none. It checks each of them.
func newestAckedBefore(acks []int64, t int64) int {
	newest := 0
	for i, at := range acks {
		if at > t {
			break
		}
		newest = i + 1
	}
	return newest
}

func TestReadLog(t *testing.T) {
	c := New(Options{Bound: bound})
	const text = "begin a 1 100\nack a 1 200\nbegin b 1 150\ndelete a 2 300\nack a 2 400\nbegin a 3 5"
	if err := c.Writer().ReadLog(strings.NewReader(text)); err != nil {
		t.Fatal(err)
	}
	got, err := c.Check()
	if err != nil || got.Writes != 3 || got.Unacked != 1 {
		t.Errorf("%v, %v; want 3 writes, 1 of them unacknowledged, and the truncated line ignored", got, err)
	}
	for _, bad := range []struct{ text, want string }{
		{"ack a 1 100\n", "line 1: a of version 1 was not started"},
		{"begin a 1 100\nack a 1 200\nack a 1 300\n", "line 3"},
		{"begin a 1\n", "3 fields"},
		{"begin a -1 100\n", "version"},
		{"begin a 1 x\n", "time"},
		{"commit a 1 100\n", `event "commit"`},
	} {
		if err := New(Options{}).Writer().ReadLog(strings.NewReader(bad.text)); err == nil || !strings.Contains(err.Error(), bad.want) {
			t.Errorf("%q: error %v, want one that contains %q", bad.text, err, bad.want)
		}
	}
}

// A writer in another process uses the same clock: a time read by Python is between two times read
// by this process.
func TestClockIsSharedWithOtherProcesses(t *testing.T) {
	if runtime.GOOS != "linux" {
		t.Log("only Linux has a clock that all processes share")
		return
	}
	before := Now()
	out, err := exec.CommandContext(t.Context(), "python3", "-c", "import time; print(time.clock_gettime_ns(time.CLOCK_BOOTTIME))").Output()
	after := Now()
	if err != nil {
		t.Fatal(fmt.Errorf("python3: %w (install what the tests need with: make prepare)", err))
	}
	between, err := strconv.ParseInt(strings.TrimSpace(string(out)), 10, 64)
	if err != nil || between < before || between > after {
		t.Errorf("python's time %d (%v) is not within ours, %d to %d", between, err, before, after)
	}
}

func BenchmarkCheck(b *testing.B) {
	c := New(Options{Bound: bound})
	w, r := c.Writer(), c.Reader()
	for k := range 1000 {
		for v := range uint64(100) {
			w.begin(strconv.Itoa(k), v+1, int64(v)*sec, false).ackAt(int64(v) * sec)
		}
	}
	rnd := rand.New(rand.NewPCG(1, 1))
	for range 100_000 {
		v := rnd.Uint64N(100)
		r.add(read{start: int64(v) * sec, end: int64(v) * sec, version: v + 1, key: rnd.Uint32N(1000)})
	}
	for b.Loop() {
		if _, err := c.Check(); err != nil {
			b.Fatal(err)
		}
	}
}
