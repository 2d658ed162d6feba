package slipstream_test

import (
	"fmt"
	"slices"
	"testing"

	"github.com/slipstream-go/slipstream"
)

// observerFunc is an observer that is a function.
type observerFunc func(slipstream.Observation)

func (f observerFunc) Observe(o slipstream.Observation) { f(o) }

// mutant: observers-end-with-a-panic
func TestAllObserversAreNotified(t *testing.T) {
	var seen []string
	named := func(name string) slipstream.Observer {
		return observerFunc(func(o slipstream.Observation) {
			seen = append(seen, name+" "+o.Op)
			if name == "b" {
				panic("b")
			}
		})
	}
	panicked := func(o slipstream.Observer) (cause any) {
		seen = nil
		defer func() { cause = recover() }()
		o.Observe(slipstream.Observation{Op: "GET"})
		return nil
	}
	for _, c := range []struct {
		all    []slipstream.Observer
		want   []string
		panics any
	}{
		{[]slipstream.Observer{named("a")}, []string{"a GET"}, nil},
		{[]slipstream.Observer{nil, named("a"), nil}, []string{"a GET"}, nil},
		{[]slipstream.Observer{named("a"), named("c"), nil, named("d")}, []string{"a GET", "c GET", "d GET"}, nil},
		{[]slipstream.Observer{named("a"), named("b"), named("c"), named("d")}, []string{"a GET", "b GET", "c GET", "d GET"}, "b"},
	} {
		cause := panicked(slipstream.Observers(c.all...))
		if !slices.Equal(seen, c.want) || cause != c.panics {
			t.Errorf("%q were notified, panic %v; expected %q and %v", seen, cause, c.want, c.panics)
		}
	}
	if o := slipstream.Observers(nil, nil); o != nil {
		t.Errorf("%v of no observers", o)
	}
	if n := testing.AllocsPerRun(100, func() { both.Observe(slipstream.Observation{}) }); n != 0 {
		t.Errorf("%v allocations for two observers", n)
	}
}

var both = slipstream.Observers(observerFunc(func(slipstream.Observation) {}), observerFunc(func(slipstream.Observation) {}))

// Options of clients take one observer.
func ExampleObservers() {
	log := observerFunc(func(o slipstream.Observation) { fmt.Println("log", o.Op) })
	count := observerFunc(func(o slipstream.Observation) { fmt.Println("count", o.Op) })
	o := slipstream.Observers(log, count)
	o.Observe(slipstream.Observation{Op: "GET"}) // by a client
	// Output:
	// log GET
	// count GET
}
