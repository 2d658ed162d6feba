package gateway

import (
	"testing"
	"time"
)

func TestBootTime(t *testing.T) {
	a := bootTime()
	time.Sleep(20 * time.Millisecond)
	if d := bootTime() - a; d < 20*time.Millisecond || d > 5*time.Second {
		t.Errorf("a sleep of 20 ms took %v on the clock", d)
	}
}

func BenchmarkBootTime(b *testing.B) {
	for b.Loop() {
		bootTime()
	}
}
