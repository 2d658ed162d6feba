package pipe

import (
	"cmp"
	"math/rand/v2"
	"time"
)

// A Backoff is the pause between attempts: it doubles from First to Most. Zeros are 20 ms and 2 s.
type Backoff struct{ First, Most time.Duration }

// After returns the pause after so many attempts, from 1. It is spread over its upper half, so
// that callers that failed together do not come back together.
func (b Backoff) After(attempts int) time.Duration {
	d := cmp.Or(max(b.First, 0), 20*time.Millisecond)
	most := max(cmp.Or(max(b.Most, 0), 2*time.Second), d)
	for range min(attempts-1, 30) {
		d = min(2*d, most)
	}
	return d/2 + rand.N(d/2+1)
}
