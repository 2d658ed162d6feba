package redis

import "testing"

func TestDelayedCallsAreBounded(t *testing.T) {
	k := &router{}
	k.delayed.Store(maxDelayed - 1)
	if !k.delay() {
		t.Error("the last slot was not reserved")
	}
	for range 2 {
		if k.delay() {
			t.Error("more slots were reserved than there are")
		}
	}
	if n := k.delayed.Load(); n != maxDelayed {
		t.Errorf("%d slots are taken, want %d", n, maxDelayed)
	}
}
