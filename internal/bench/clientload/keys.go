package clientload

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

// maxKeys is the greatest number of keys.
const maxKeys = 1 << 40

// Keys are those that a workload uses, by their numbers from 0. Count and
// Distribution must be set.
type Keys struct {
	Prefix       string // of the names of keys, which ends with their number
	Count        int64
	Distribution string
	Exponent     float64 // of Zipf
	Seed         uint64
}

// Check returns the first thing that is wrong.
func (k *Keys) Check() error {
	switch {
	case k.Count < 1 || k.Count > maxKeys:
		return fmt.Errorf("%d keys; expected 1 to %d", k.Count, int64(maxKeys))
	case k.Distribution != Uniform && k.Distribution != Zipf && k.Distribution != Sequential:
		return fmt.Errorf("distribution %q of keys; expected %s, %s or %s", k.Distribution, Uniform, Zipf, Sequential)
	case k.Distribution == Zipf && !(k.Exponent > 1 && k.Exponent <= 10):
		return fmt.Errorf("an exponent of %v for the distribution of Zipf; expected more than 1 and at most 10", k.Exponent)
	}
	return nil
}

// AppendName appends the name of a key.
func (k *Keys) AppendName(b []byte, key int64) []byte {
	return strconv.AppendInt(append(b, k.Prefix...), key, 10)
}

// A Chooser says which key is next. It belongs to one caller.
type Chooser struct {
	keys int64
	rng  *rand.Rand
	zipf *rand.Zipf // nil: another distribution
	next int64      // Sequential; -1: another distribution
}

// Chooser returns that of one of so many callers.
func (k *Keys) Chooser(caller, callers int) *Chooser {
	c := &Chooser{keys: k.Count, rng: rand.New(rand.NewPCG(k.Seed, uint64(caller))), next: -1}
	switch k.Distribution {
	case Zipf:
		c.zipf = rand.NewZipf(c.rng, k.Exponent, 1, uint64(k.Count-1))
	case Sequential:
		c.next = int64(caller) * max(k.Count/int64(callers), 1) % k.Count
	}
	return c
}

// Key returns the number of the next key, from 0.
func (c *Chooser) Key() int64 {
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

// IntN returns a random number below n.
func (c *Chooser) IntN(n int) int { return c.rng.IntN(n) }
