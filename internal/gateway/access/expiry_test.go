package access

import (
	"log/slog"
	"math"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// datedKeys is a key file with a key for each time, in their order; "" never expires.
func datedKeys(t *testing.T, until ...string) (text string, keys []string) {
	t.Helper()
	for i, u := range until {
		keys = append(keys, NewKey())
		line := must(KeyLine(string(rune('a'+i)), keys[i]))
		if u != "" {
			line += " until:" + u // LineUntil accepts no time that has passed
		}
		text += line + "\n"
	}
	return text, keys
}

// TestKeysExpire: a key is refused from its time on, and not before, without reading the file.
func TestKeysExpire(t *testing.T) {
	// start is 2026-01-02 03:04:05 UTC.
	text, keys := datedKeys(t, "2026-01-02", "2026-01-02T06:04:05+02:00", "2026-01-01", "")
	g, clock := newGate(t, func(c *Config) { c.KeysFile = tempFile(t, "keys.txt", []byte(text)) })
	check := func(what string, valid ...bool) {
		t.Helper()
		for i, want := range valid {
			c := Credentials{APIKey: keys[i]}
			caller, left := g.Known(HashKey(keys[i]))
			if (caller != nil) != want || (left > 0) != want {
				t.Errorf("%s: key %d is known as %v for %v, want that to be %v", what, i, caller, left, want)
			}
			if want {
				accepted(t, g, c, "key:"+string(rune('a'+i)))
			} else {
				refused(t, g, c, 401, "has expired")
			}
			if caller, refusal, ok := g.IdentifyAtOnce(c); !ok || (caller != nil) != want || (refusal == nil) != want {
				t.Errorf("%s: key %d on an event loop: %v, %v, %v", what, i, caller, refusal, ok)
			}
		}
	}
	check("at the start", true, true, false, true)
	if next, want := g.Stats().NextExpiry, start.Add(time.Hour); !next.Equal(want) {
		t.Errorf("the next key expires at %v, want %v", next, want)
	}
	clock.advance(time.Hour - 1)
	check("a nanosecond before", true, true, false, true)
	if _, left := g.Known(HashKey(keys[1])); left != 1 {
		t.Errorf("valid for %v, want 1 ns", left)
	}
	clock.advance(1)
	check("at its time", true, false, false, true)
	midnight := time.Date(2026, 1, 3, 0, 0, 0, 0, time.UTC)
	if next := g.Stats().NextExpiry; !next.Equal(midnight) {
		t.Errorf("the next key expires at %v, want %v", next, midnight)
	}
	clock.at.Store(midnight.UnixNano() - 1)
	check("at the end of the day", true, false, false, true)
	clock.advance(1)
	check("the day after", false, false, false, true)
	if next := g.Stats().NextExpiry; !next.IsZero() {
		t.Errorf("the next key expires at %v, want never", next)
	}
	if _, left := g.Known(HashKey(keys[3])); left != math.MaxInt64 {
		t.Errorf("a key that does not expire is valid for %v", left)
	}
}

// A key with a time allocates no more than one without.
func TestExpiryAllocatesNothing(t *testing.T) {
	text, keys := datedKeys(t, "2026-01-03")
	g, _ := newGate(t, func(c *Config) { c.KeysFile = tempFile(t, "keys.txt", []byte(text)) })
	if n := testing.AllocsPerRun(100, func() { accepted(t, g, Credentials{APIKey: keys[0]}, "key:a") }); n != 0 {
		t.Errorf("%v allocations, want none", n)
	}
}

// TestReminders: a key is logged a week before it expires, a day before, and when it has
// expired, once each; another file starts over.
func TestReminders(t *testing.T) {
	log := &logText{}
	text, _ := datedKeys(t, "2026-01-12", "2026-01-12", "", "2026-01-01")
	var file string
	g, clock := newGate(t, func(c *Config) {
		c.KeysFile = tempFile(t, "keys.txt", []byte(text))
		c.Log, file = slog.New(slog.NewTextHandler(log, nil)), c.KeysFile
	})
	expect := func(what string, week, day, expired int) {
		t.Helper()
		for range 3 {
			g.remind()
		}
		w, d, e := log.count("within 7 days"), log.count("within a day"), log.count("have expired")
		if w != week || d != day || e != expired {
			t.Errorf("%s: %d, %d, %d reminders, want %d, %d, %d", what, w, d, e, week, day, expired)
		}
	}
	expect("ten days before", 0, 0, 1)
	clock.at.Store(time.Date(2026, 1, 6, 0, 0, 0, 0, time.UTC).UnixNano())
	expect("a week before", 1, 0, 1)
	if log.count("keys=2 first=a until=2026-01-13T00:00:00Z") != 1 {
		t.Errorf("the line does not say how many and which: %s", log.b.String())
	}
	clock.advance(6 * 24 * time.Hour)
	expect("a day before", 1, 1, 1)
	clock.advance(24 * time.Hour)
	expect("at the end", 1, 1, 2)
	testkit.WriteAtOnce(t, file, []byte(strings.ReplaceAll(text, "2026-01-12", "2026-01-14")))
	g.looks()
	expect("another file", 2, 1, 3)
}

func TestLineUntil(t *testing.T) {
	line := must(KeyLine("web", webKey))
	for _, until := range []string{"2199-12-31", "2199-12-31T23:00:00+01:00"} {
		got, err := LineUntil(line, until)
		if err != nil || got != line+" until:"+until {
			t.Errorf("got %q, %v", got, err)
		}
		if _, _, at, message := parseKeyLine(got); message != "" || at == 0 {
			t.Errorf("%q is read as %d, %q", got, at, message)
		}
	}
	for until, want := range map[string]string{"": "not a time", "tomorrow": "not a time", "2199-12-31 x": "not a time", "2020-01-01": "has passed", "2020-01-01T00:00:00Z": "has passed"} {
		if got, err := LineUntil(line, until); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%q: got %q, %v, want an error with %q", until, got, err, want)
		}
	}
}
