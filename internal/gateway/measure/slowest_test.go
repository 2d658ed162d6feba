package measure

import (
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"
)

// told renders a list as "key took source", slowest first.
func told(list []Slow) string {
	var b strings.Builder
	for _, e := range list {
		fmt.Fprintf(&b, "%s/%s %v %s, ", e.Resource, e.Key, e.Took, e.Source)
	}
	return strings.TrimSuffix(b.String(), ", ")
}

func TestSlowest(t *testing.T) {
	s := NewSlowest(3)
	now := 1000 * time.Second
	record := func(key string, took time.Duration, source string) {
		t.Helper()
		s.Record(now, took, "depts", func() string { return key }, source)
	}
	expect := func(want string) {
		t.Helper()
		if got := told(s.List(now)); got != want {
			t.Fatalf("got %q, want %q", got, want)
		}
	}
	expect("")
	record("quick", 99*time.Microsecond, "hit")
	expect("")
	record("a", 2*time.Millisecond, "load")
	record("b", 5*time.Millisecond, "load")
	record("a", time.Millisecond, "hit") // faster than before: the slow one stays
	expect("depts/b 5ms load, depts/a 2ms load")
	record("a", 7*time.Millisecond, "joined")
	record("c", 3*time.Millisecond, "hit")
	expect("depts/a 7ms joined, depts/b 5ms load, depts/c 3ms hit")
	record("d", 3*time.Millisecond, "hit") // not slower than the fastest of the full list
	record("e", 4*time.Millisecond, "hit")
	expect("depts/a 7ms joined, depts/b 5ms load, depts/e 4ms hit")
	s.Record(now, 6*time.Millisecond, "emps", func() string { return "a" }, "load") // another resource's key
	expect("depts/a 7ms joined, emps/a 6ms load, depts/b 5ms load")

	// Entries expire after five minutes, and faster requests are recorded.
	now += 4 * time.Minute
	record("b", 8*time.Millisecond, "load")
	now += time.Minute + 2*time.Second
	record("f", time.Millisecond, "load")
	expect("depts/b 8ms load, depts/f 1ms load")
	if list := s.List(now); list[0].Ago != time.Minute+2*time.Second || list[1].Ago != 0 {
		t.Errorf("ages: %v", list)
	}
	now += 10 * time.Minute
	expect("")
}

// TestSlowestBounds: the memory is bounded, whatever clients send, and does not
// retain their buffers.
func TestSlowestBounds(t *testing.T) {
	s := NewSlowest(1 << 30)
	for i := range 3 * maxSlow {
		s.Record(0, time.Duration(i)*time.Millisecond, "depts", func() string { return fmt.Sprintf("%06d", i) + strings.Repeat("x", 10_000) }, "load")
	}
	list := s.List(0)
	if len(list) != maxSlow || list[0].Took != (3*maxSlow-1)*time.Millisecond || list[maxSlow-1].Took != 2*maxSlow*time.Millisecond {
		t.Fatalf("%d kept, from %v to %v", len(list), list[0].Took, list[len(list)-1].Took)
	}
	for _, e := range list {
		if len(e.Key) != maxKeyText {
			t.Fatalf("a key of %d bytes is kept, want %d", len(e.Key), maxKeyText)
		}
	}
	if n := NewSlowest(-1).places; n != 1 {
		t.Errorf("%d places, want 1", n)
	}
}

// TestSlowestKeyOnlyWhenKept: the text of a key is made only for slow requests.
func TestSlowestKeyOnlyWhenKept(t *testing.T) {
	s := NewSlowest(1)
	s.Record(0, time.Second, "depts", func() string { return "1" }, "load")
	for _, took := range []time.Duration{0, time.Microsecond, 999 * time.Millisecond, time.Second} {
		s.Record(time.Second, took, "depts", func() string {
			t.Errorf("the key is formatted at %v", took)
			return "2"
		}, "hit")
	}
}

func TestSlowestFromManyGoroutines(t *testing.T) {
	s := NewSlowest(10)
	var writers sync.WaitGroup
	for w := range 4 {
		writers.Go(func() {
			for i := range 2000 {
				took := time.Duration(w*2000+i+1) * time.Millisecond
				s.Record(0, took, "depts", func() string { return fmt.Sprint(w, i) }, "load")
				if i%100 == 0 {
					s.List(0)
				}
			}
		})
	}
	writers.Wait()
	list := s.List(0)
	for i, e := range list {
		if want := time.Duration(8000-i) * time.Millisecond; e.Took != want {
			t.Errorf("place %d: %v, want %v", i, e.Took, want)
		}
	}
	if len(list) != 10 {
		t.Errorf("%d kept, want 10", len(list))
	}
}
