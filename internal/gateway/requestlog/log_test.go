package requestlog

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"math"
	"net/netip"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"
	"unicode/utf8"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// line is what a reader of the log sees.
type line struct {
	Time        string  `json:"time"`
	Protocol    string  `json:"protocol"`
	Client      string  `json:"client"`
	Method      string  `json:"method"`
	Target      string  `json:"target"`
	TargetBytes int     `json:"target_bytes"`
	Keys        int     `json:"keys"`
	Status      int     `json:"status"`
	Error       string  `json:"error"`
	Bytes       int     `json:"bytes"`
	Took        float64 `json:"took_us"`
	Source      string  `json:"source"`
	Resource    string  `json:"resource"`
	Caller      string  `json:"caller"`
	RequestID   string  `json:"request_id"`
	TraceID     string  `json:"trace_id"`
	Referer     string  `json:"referer"`
	UserAgent   string  `json:"user_agent"`
	Lost        int64   `json:"lost"`
	Sample      float64 `json:"sample"`
}

func parse(t testing.TB, text []byte) line {
	t.Helper()
	var l line
	d := json.NewDecoder(bytes.NewReader(text))
	d.DisallowUnknownFields()
	if err := d.Decode(&l); err != nil {
		t.Fatalf("%q: %v", text, err)
	}
	return l
}

func hit() *Entry {
	return &Entry{
		Time: time.Date(2026, 11, 22, 7, 8, 9, 45_600_000, time.UTC), Took: 12_345 * time.Nanosecond,
		Protocol: "http", Client: netip.MustParseAddr("192.0.2.17"), Method: "GET", Target: "/depts/10",
		Status: 200, Bytes: 321, Source: "hit", Resource: "depts", Caller: "key:web", RequestID: "0123456789abcdef0123",
		TraceID: [16]byte{1, 2, 15: 255}, Referer: "https://app.example/", UserAgent: "curl/8.5.0",
	}
}

func TestLine(t *testing.T) {
	var clock clockText
	got := string(hit().appendTo(nil, &clock))
	want := `{"time":"2026-11-22T07:08:09.045Z","protocol":"http","client":"192.0.2.17","method":"GET","target":"/depts/10",` +
		`"status":200,"bytes":321,"took_us":12,"source":"hit","resource":"depts","caller":"key:web","request_id":"0123456789abcdef0123",` +
		`"trace_id":"010200000000000000000000000000ff","referer":"https://app.example/","user_agent":"curl/8.5.0"}` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
	e := &Entry{Time: time.Unix(0, 0), Protocol: "redis", Method: "GET", Keys: 2, Target: "depts:\x00\"\\\x7f\u009b\xff€", Error: "NOAUTH"}
	got = string(e.appendTo(nil, &clock))
	want = `{"time":"1970-01-01T00:00:00.000Z","protocol":"redis","method":"GET","target":"depts:\u0000\"\\\u007f\u009b\ufffd€","keys":2,"error":"NOAUTH","bytes":0,"took_us":0}` + "\n"
	if got != want {
		t.Errorf("got  %swant %s", got, want)
	}
}

// TestBounds: the longest line fits where a block must have room for it, and no
// character is divided.
func TestBounds(t *testing.T) {
	worst := strings.Repeat("\x01", 1<<17)
	e := &Entry{Time: time.Unix(1<<60, 0), Took: math.MinInt64, Client: netip.MustParseAddr("1111:2222:3333:4444:5555:6666:7777:8888"),
		Protocol: worst, Method: worst, Target: worst, Status: math.MinInt64, Error: worst, Bytes: math.MinInt64, Source: worst, Resource: worst, Keys: math.MaxInt,
		Caller: worst, RequestID: worst, TraceID: [16]byte{1}, Referer: worst, UserAgent: worst, share: newSample(1.2345678901234567e-300, 0).share}
	var clock clockText
	b := e.appendTo(nil, &clock)
	if len(b) > longestLine {
		t.Errorf("got %d bytes, want at most %d", len(b), longestLine)
	}
	if l := parse(t, b); len(l.Target) != maxTarget || l.TargetBytes != 1<<17 || l.Time != "1970-01-01T00:00:00.000Z" {
		t.Errorf("got %d bytes of the target, %d reported, time %s", len(l.Target), l.TargetBytes, l.Time)
	}
	for _, test := range []struct {
		s    string
		most int
		want string
	}{
		{"abc", 3, "abc"}, {"abcd", 3, "abc"}, {"ab€", 4, "ab"}, {"ab€", 5, "ab€"}, {"ab\U0001F600", 5, "ab"}, {"\x80\x80\x80\x80\x80\x80\x80", 6, "\x80\x80"}, {"€", 1, ""},
	} {
		if got := cut(test.s, test.most); got != test.want {
			t.Errorf("cut(%q, %d): got %q, want %q", test.s, test.most, got, test.want)
		}
	}
}

// TestClock: the text of a second is reused with different milliseconds.
func TestClock(t *testing.T) {
	var clock clockText
	at := time.Date(2026, 2, 28, 23, 59, 59, 999_999_999, time.FixedZone("", 3600))
	for range 3000 {
		want := at.UTC().Format("2006-01-02T15:04:05.000Z")
		if got := string(clock.append(nil, at)); got != want {
			t.Fatalf("got %s, want %s", got, want)
		}
		at = at.Add(777 * time.Microsecond)
	}
	if got := string(new(clockText).append(nil, time.Unix(0, 5e6))); got != "1970-01-01T00:00:00.005Z" {
		t.Errorf("got %s", got)
	}
}

// TestLog: all lines of many goroutines are there, complete, each once.
func TestLog(t *testing.T) {
	testkit.NoLeaks(t)
	path := filepath.Join(t.TempDir(), "access.log")
	if err := os.WriteFile(path, []byte("before\n"), 0o640); err != nil {
		t.Fatal(err)
	}
	l, err := Open(Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	const writers, each = 8, 3000
	var all sync.WaitGroup
	for w := range writers {
		all.Go(func() {
			e := hit()
			for i := range each {
				e.RequestID = fmt.Sprint(w, "-", i)
				l.Record(e)
			}
		})
	}
	all.Wait()
	for range 2 {
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
	}
	text, err := os.ReadFile(path)
	if err != nil {
		t.Fatal(err)
	}
	lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
	if string(lines[0]) != "before" {
		t.Errorf("got %q first, want what was there", lines[0])
	}
	seen := make(map[string]bool)
	for _, one := range lines[1:] {
		seen[parse(t, one).RequestID] = true
	}
	if len(lines) != 1+writers*each || len(seen) != writers*each || l.Lines() != writers*each || l.Dropped() != 0 {
		t.Errorf("got %d lines, %d requests, counted %d, dropped %d; want %d", len(lines)-1, len(seen), l.Lines(), l.Dropped(), writers*each)
	}
	l.Record(hit())
	if l.Dropped() != 1 {
		t.Errorf("after Close: got %d dropped, want 1", l.Dropped())
	}
}

// TestTornFile: a line that an earlier process could not finish damages none of ours.
func TestTornFile(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	for before, want := range map[string]int{"": 1, "whole\n": 2, "torn": 2} {
		if err := os.WriteFile(path, []byte(before), 0o640); err != nil {
			t.Fatal(err)
		}
		l, err := Open(Config{Path: path})
		if err != nil {
			t.Fatal(err)
		}
		l.Record(hit())
		if err := l.Close(t.Context()); err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		lines := bytes.Split(bytes.TrimSuffix(text, []byte("\n")), []byte("\n"))
		if len(lines) != want || parse(t, lines[want-1]).RequestID != hit().RequestID {
			t.Errorf("after %q: got %q, want %d lines", before, text, want)
		}
	}
}

// TestFlush: a lone line does not wait for its block to fill.
func TestFlush(t *testing.T) {
	path := filepath.Join(t.TempDir(), "access.log")
	l, err := Open(Config{Path: path, FlushInterval: 5 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close(context.Background())
	l.Record(hit())
	testkit.Eventually(t, 10*time.Second, func() error {
		if text, err := os.ReadFile(path); err != nil || len(text) == 0 {
			return fmt.Errorf("%q, %v", text, err)
		}
		return nil
	})
	info, err := os.Stat(path)
	if err != nil || info.Mode().Perm()&0o027 != 0 {
		t.Errorf("got %v, %v, want a file that others cannot read", info.Mode(), err)
	}
}

// TestReopen: after a rotation lines go to a new file, and none is lost.
func TestReopen(t *testing.T) {
	testkit.NoLeaks(t)
	dir := t.TempDir()
	path := filepath.Join(dir, "access.log")
	var told syncBuffer
	l, err := Open(Config{Path: path, FlushInterval: 5 * time.Millisecond, Log: slog.New(slog.NewTextHandler(&told, nil))})
	if err != nil {
		t.Fatal(err)
	}
	for i := range 3 {
		l.Record(hit())
		if err := os.Rename(path, fmt.Sprint(path, ".", i)); err != nil {
			t.Fatal(err)
		}
		l.Reopen()
		testkit.Eventually(t, 10*time.Second, func() error { _, err := os.Stat(path); return err })
	}
	// A directory at its path cannot be opened.
	if err := errors.Join(os.Remove(path), os.Mkdir(path, 0o700)); err != nil {
		t.Fatal(err)
	}
	l.Reopen()
	testkit.Eventually(t, 10*time.Second, func() error {
		if !strings.Contains(told.String(), "the old file stays in use") {
			return errors.New("nothing is logged")
		}
		return nil
	})
	l.Record(hit())
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	n := 0
	for i := range 3 {
		text, err := os.ReadFile(fmt.Sprint(path, ".", i))
		if err != nil {
			t.Fatal(err)
		}
		n += bytes.Count(text, []byte("\n"))
	}
	if n != 3 || l.Dropped() != 0 {
		t.Errorf("got %d lines in the old files and %d dropped, want 3 and 0", n, l.Dropped())
	}
}

func TestOpenFails(t *testing.T) {
	for _, c := range []Config{{Path: t.TempDir()}, {Path: filepath.Join(t.TempDir(), "none", "a")}, {Path: ""}, {Path: "-", MaxBuffered: 1}} {
		if l, err := Open(c); err == nil {
			t.Errorf("%+v was opened", c)
			_ = l.Close(t.Context())
		}
	}
}

// gatedWriter writes when it may.
type gatedWriter struct {
	gate chan struct{}
	out  syncBuffer
}

func (g *gatedWriter) Write(b []byte) (int, error) {
	<-g.gate
	return g.out.Write(b)
}

// syncBuffer is a buffer that two goroutines use.
type syncBuffer struct {
	mu sync.Mutex
	b  bytes.Buffer
}

func (s *syncBuffer) Write(b []byte) (int, error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.Write(b)
}

func (s *syncBuffer) String() string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return s.b.String()
}

// TestDiskHangs: Record continues, memory is bounded, lost lines are counted and
// reported.
func TestDiskHangs(t *testing.T) {
	testkit.NoLeaks(t)
	w := &gatedWriter{gate: make(chan struct{})}
	var told syncBuffer
	l := start(Config{Path: "-", MaxBuffered: minBuffered, Log: slog.New(slog.NewTextHandler(&told, nil))}, w, nil)
	const n = 20_000 // 7 MB
	for range n {
		l.Record(hit())
	}
	if got := l.blocks.Load() * blockCap; got > minBuffered {
		t.Errorf("got %d bytes of blocks, want at most %d", got, minBuffered)
	}
	dropped := l.Dropped()
	if dropped == 0 {
		t.Fatal("nothing was dropped")
	}
	short, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	if err := l.Close(short); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("Close of a disk that hangs: got %v", err)
	}
	close(w.gate)
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole, lost := int64(0), int64(0)
	for one := range strings.Lines(w.out.String()) {
		if p := parse(t, []byte(one)); p.Lost > 0 {
			lost += p.Lost
		} else {
			whole++
		}
	}
	if whole+lost != n || lost != dropped {
		t.Errorf("got %d lines and %d reported lost, want %d in all and %d lost", whole, lost, n, dropped)
	}
	if got := strings.Count(told.String(), "lines of the request log were lost"); got != 1 {
		t.Errorf("complained %d times in a second, want once:\n%s", got, told.String())
	}
}

// fullDisk accepts a number of bytes and then no more, until it is cleared.
type fullDisk struct {
	mu   sync.Mutex
	room int
	out  bytes.Buffer
}

func (d *fullDisk) Write(b []byte) (int, error) {
	d.mu.Lock()
	defer d.mu.Unlock()
	n, err := len(b), error(nil)
	if n > d.room {
		n, err = d.room, errors.New("no space left on device")
	}
	d.room -= n
	d.out.Write(b[:n])
	return n, err
}

// TestDiskFull: an error does not end the log, a line that was cut short damages no
// other, and the numbers add up.
func TestDiskFull(t *testing.T) {
	d := &fullDisk{room: 1000}
	l := start(Config{Path: "-", FlushInterval: time.Millisecond}, d, nil)
	for range 500 {
		l.Record(hit())
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if l.Dropped() == 0 {
			return errors.New("nothing is lost")
		}
		return nil
	})
	d.mu.Lock()
	d.room = math.MaxInt
	d.mu.Unlock()
	for range 500 {
		l.Record(hit())
	}
	if err := l.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	whole, lost, torn := int64(0), int64(0), 0
	for one := range strings.Lines(d.out.String()) {
		var p line
		if json.Unmarshal([]byte(one), &p) != nil {
			torn++
			continue
		}
		lost += p.Lost
		if p.Lost == 0 {
			whole++
		}
	}
	if torn != 1 || whole+lost != 1000 || lost != l.Dropped() {
		t.Errorf("got %d torn, %d whole, %d reported lost, %d dropped; want 1 torn and 1000 together", torn, whole, lost, l.Dropped())
	}
}

// TestShrink: blocks that only a burst needed are freed.
func TestShrink(t *testing.T) {
	l := start(Config{Path: "-", FlushInterval: time.Millisecond}, io.Discard, nil)
	defer l.Close(context.Background())
	var burst [][]byte
	for range 40 {
		burst = append(burst, l.take())
	}
	if n := l.blocks.Load(); n != 40 {
		t.Fatalf("got %d blocks, want 40", n)
	}
	for _, b := range burst {
		l.full <- b
	}
	testkit.Eventually(t, 10*time.Second, func() error {
		if n := l.blocks.Load(); n > stripes {
			return fmt.Errorf("%d blocks", n)
		}
		return nil
	})
}

func TestRecordAllocatesNothing(t *testing.T) {
	l := start(Config{Path: "-"}, io.Discard, nil)
	defer l.Close(context.Background())
	e := hit()
	if n := testing.AllocsPerRun(5000, func() { l.Record(e) }); n != 0 {
		t.Errorf("got %v allocations a line, want 0", n)
	}
}

// FuzzLine: every line is one line of JSON that decodes to the values.
func FuzzLine(f *testing.F) {
	f.Add("GET", "/depts/10", "curl", "hit", 200, 10, int64(1e9), []byte{1, 2, 3, 4})
	f.Add("M\x00", "\xff\xfe\u2028\u009b<>&\x7f", "\"\\\n\r", "\u00e9", 0, -1, int64(-1), make([]byte, 16))
	f.Fuzz(func(t *testing.T, method, target, agent, id string, status, size int, at int64, addr []byte) {
		client, _ := netip.AddrFromSlice(addr)
		when := time.Unix(0, at)
		e := &Entry{Time: when, Took: time.Duration(at), Protocol: "http", Client: client, Method: method, Target: target,
			Status: status, Bytes: size, RequestID: id, UserAgent: agent, Error: id, Source: id, Resource: id, Caller: id, Referer: agent}
		var clock clockText
		b := e.appendTo(nil, &clock)
		if len(b) > longestLine || bytes.IndexByte(b, '\n') != len(b)-1 || !utf8.Valid(b) {
			t.Fatalf("not one line of UTF-8 of at most %d bytes: %q", longestLine, b)
		}
		if i := bytes.IndexFunc(b[:len(b)-1], func(c rune) bool { return c < ' ' || c >= 0x7f && c < 0xa0 }); i >= 0 {
			t.Fatalf("a control character at %d: %q", i, b)
		}
		got := parse(t, b)
		text := func(s string, most int) string { // the text as JSON can represent it
			return string([]rune(cut(s, most)))
		}
		want := line{Time: when.UTC().Format("2006-01-02T15:04:05.000Z"), Protocol: "http", Method: text(method, maxWord), Target: text(target, maxTarget),
			Status: status, Error: text(id, maxWord), Bytes: size, Took: float64(time.Duration(at).Microseconds()), Source: text(id, maxSource),
			Resource: text(id, maxName), Caller: text(id, maxCaller), RequestID: text(id, maxID), Referer: text(agent, maxForeign), UserAgent: text(agent, maxForeign)}
		if client.IsValid() {
			want.Client = client.String()
		}
		if len(target) > maxTarget {
			want.TargetBytes = len(target)
		}
		if got != want {
			t.Fatalf("got  %+v\nwant %+v", got, want)
		}
	})
}

// BenchmarkRecord is the cost for a request: less than 400 ns and no allocation for
// most lines, and a fifth more for a line with all members.
func BenchmarkRecord(b *testing.B) {
	all := hit()
	all.Time = time.Now()
	all.UserAgent = "Mozilla/5.0 (X11; Linux x86_64; rv:140.0) Gecko/20100101 Firefox/140.0"
	most := *all
	most.Caller, most.TraceID, most.Referer = "", [16]byte{}, ""
	for _, test := range []struct {
		name  string
		entry *Entry
	}{{"hit", &most}, {"all", all}} {
		b.Run(test.name, func(b *testing.B) {
			l, err := Open(Config{Path: os.DevNull, MaxBuffered: 64 << 20})
			if err != nil {
				b.Fatal(err)
			}
			defer l.Close(context.Background())
			b.ReportAllocs()
			for b.Loop() {
				l.Record(test.entry)
			}
			b.ReportMetric(float64(l.Dropped()), "dropped")
		})
	}
}
