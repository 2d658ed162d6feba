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
	Sequential = "sequential" // each caller iterates over all of them, starting at a different one
)

// maxKeys is the maximum number of keys.
const maxKeys = 1 << 40

// Keys describes the keys that a workload uses, which are numbered from 0. Count and Distribution
// must be set.
type Keys struct {
	Prefix       string // of the names of keys; the number of the key follows it
	Count        int64
	Distribution string
	Exponent     float64 // for Zipf
	Seed         uint64
}

// Check returns an error for the first invalid field.
func (k *Keys) Check() error {
	switch {
	case k.Count < 1 || k.Count > maxKeys:
		return fmt.Errorf("%d keys; expected 1 to %d", k.Count, int64(maxKeys))
	case k.Distribution != Uniform && k.Distribution != Zipf && k.Distribution != Sequential:
		return fmt.Errorf("key distribution %q; expected %s, %s or %s", k.Distribution, Uniform, Zipf, Sequential)
	case k.Distribution == Zipf && !(k.Exponent > 1 && k.Exponent <= 10):
		return fmt.Errorf("an exponent of %v for the Zipf distribution; expected more than 1 and at most 10", k.Exponent)
	}
	return nil
}

// AppendName appends the name of a key.
func (k *Keys) AppendName(b []byte, key int64) []byte {
	return strconv.AppendInt(append(b, k.Prefix...), key, 10)
}

// A Chooser chooses the next key. It belongs to one caller.
type Chooser struct {
	keys int64
	rng  *rand.Rand
	zipf *rand.Zipf // nil for other distributions
	next int64      // for Sequential; -1 for other distributions
}

// Chooser returns the chooser for one of the given number of callers.
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
