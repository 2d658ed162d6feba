package striped

import (
	"sync"
	"testing"
)

func TestCounter(t *testing.T) {
	var c Counter
	var all sync.WaitGroup
	for range 8 {
		all.Go(func() {
			for range 1000 {
				c.Add(3)
			}
		})
	}
	all.Wait()
	if got := c.Sum(); got != 24_000 {
		t.Errorf("Sum is %d, want 24000", got)
	}
}
