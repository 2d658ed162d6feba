package redis

import "testing"

func TestDelayedCallsAreBounded(t *testing.T) {
	k := &router{}
	k.delayed.Store(maxDelayed - 1)
	if !k.delay() {
		t.Error("the last place was not given")
	}
	for range 2 {
		if k.delay() {
			t.Error("more places were given than there are")
		}
	}
	if n := k.delayed.Load(); n != maxDelayed {
		t.Errorf("%d places are taken, want %d", n, maxDelayed)
	}
}
