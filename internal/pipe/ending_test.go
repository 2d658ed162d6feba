package pipe

import (
	"runtime"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// The end of a call and the goroutine that waits for it meet in every order, a million times: the
// waiter always wakes, never before the end, and nothing is left in the channel.
func TestEndingMeets(t *testing.T) {
	r := testkit.Rand(t)
	const rounds = 200_000
	e := newEnding()
	value := 0
	begin, ended := make(chan int), make(chan struct{})
	go func() {
		for i := range begin {
			if i%3 == 0 {
				runtime.Gosched()
			}
			value = i
			e.reach()
			ended <- struct{}{}
		}
	}()
	for i := range rounds {
		e.reset()
		begin <- i
		switch r.IntN(3) {
		case 0:
			runtime.Gosched()
		case 1:
			for n := r.IntN(50); n > 0 && !e.reached(); n-- {
				runtime.Gosched()
			}
		}
		e.wait()
		if value != i {
			t.Fatalf("the waiter continued at %d, before the end of %d", value, i)
		}
		<-ended
		if !e.reached() || len(e.wake) != 0 {
			t.Fatalf("after round %d: reached %t, %d wake-ups in the channel", i, e.reached(), len(e.wake))
		}
	}
	close(begin)
}
