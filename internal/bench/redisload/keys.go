package redisload

import (
	"fmt"
	"math/rand/v2"
	"strconv"
)

// Distributions of keys.
const (
	Uniform    = "uniform"
	Zipf       = "zipf"       // few keys are used often
	Sequential = "sequential" // each caller walks over all of them from a place of its own
)

// A chooser says which key is next.
type chooser struct {
	keys int64
	rng  *rand.Rand
	zipf *rand.Zipf // nil: another distribution
	next int64      // Sequential; -1: another distribution
}

func newChooser(o *Options, caller int) *chooser {
	c := &chooser{keys: o.Keys, rng: rand.New(rand.NewPCG(o.Seed, uint64(caller))), next: -1}
	switch o.Distribution {
	case Zipf:
		c.zipf = rand.NewZipf(c.rng, o.Exponent, 1, uint64(o.Keys-1))
	case Sequential:
		c.next = int64(caller) * max(o.Keys/int64(o.Callers), 1) % o.Keys
	}
	return c
}

// key returns the number of the next key, from 0.
func (c *chooser) key() int64 {
	switch {
	case c.zipf != nil:
		return int64(c.zipf.Uint64())
	case c.next >= 0:
		key := c.next
		c.next = (c.next + 1) % c.keys
		return key
	}
	return c.rng.Int64N(c.keys)
}

func (o *Options) appendKey(b []byte, key int64) []byte {
	return strconv.AppendInt(append(b, o.Prefix...), key, 10)
}

func (o *Options) checkKeys() error {
	switch {
	case o.Keys < 1 || o.Keys > 1<<40:
		return fmt.Errorf("%d keys; expected 1 to %d", o.Keys, int64(1)<<40)
	case o.Distribution != Uniform && o.Distribution != Zipf && o.Distribution != Sequential:
		return fmt.Errorf("distribution %q of keys; expected %s, %s or %s", o.Distribution, Uniform, Zipf, Sequential)
	case o.Distribution == Zipf && !(o.Exponent > 1 && o.Exponent <= 10):
		return fmt.Errorf("an exponent of %v for the distribution of Zipf; expected more than 1 and at most 10", o.Exponent)
	}
	return nil
}
