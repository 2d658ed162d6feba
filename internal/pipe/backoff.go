package pipe

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// A Backoff is the pause between attempts, which doubles from First to Most. If zero, they default to 20 ms and 2 s.
type Backoff struct{ First, Most time.Duration }

// After returns the pause after the given number of attempts, which is at least 1. The pause is random in its
// upper half, so that callers that failed together do not retry together.
func (b Backoff) After(attempts int) time.Duration {
	d := cmp.Or(max(b.First, 0), 20*time.Millisecond)
	most := max(cmp.Or(max(b.Most, 0), 2*time.Second), d)
	for range min(attempts-1, 30) {
		d = min(2*d, most)
	}
	return d/2 + rand.N(d/2+1)
}
