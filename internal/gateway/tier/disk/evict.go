package disk

import (
	"bytes"
	"hash/maphash"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"
)

// clock decides what is evicted when the file is full: its hand moves around the keys and evicts
// those that were not read since it last passed (second chance). A bit, found by a hash of the
// key, records a read, so it takes an eighth of a byte per document and a read moves nothing.
// Adjacent keys are evicted together, so whole pages become free.
type clock struct {
	// Immutable.
	seed maphash.Seed

	// Atomics. Set by readers, cleared by the writer.
	read []atomic.Uint32

	// Owned by the writer.
	hand []byte // the last key that was visited
}

// newClock makes a clock for about as many documents as fit into budget bytes.
func newClock(budget int64) *clock {
	bits := int64(1 << 16)
	for bits < budget/1024 && bits < 1<<32 {
		bits *= 2
	}
	return &clock{seed: maphash.MakeSeed(), read: make([]atomic.Uint32, bits/32)}
}

func (c *clock) place(key []byte) (word *atomic.Uint32, bit uint32) {
	h := maphash.Bytes(c.seed, key)
	return &c.read[h>>5%uint64(len(c.read))], 1 << (h & 31)
}

// touch notes that a key was read.
func (c *clock) touch(key []byte) {
	if word, bit := c.place(key); word.Load()&bit == 0 { // a load first: most are set already
		word.Or(bit)
	}
}

// spared reports whether the key was read, and clears its bit.
func (c *clock) spared(key []byte) bool {
	word, bit := c.place(key)
	return word.And(^bit)&bit != 0
}

// evictedInOne bounds how many keys one transaction visits.
const evictedInOne = 200_000

// evict removes documents until size bytes are free, and unreachable records that it passes. It
// returns how many reachable documents were removed, and how many bytes and records in total.
func (c *clock) evict(docs *bolt.Bucket, size int64, garbage func(key, record []byte) bool) (evicted, records, freed int64, err error) {
	cursor := docs.Cursor()
	key, record := cursor.Seek(c.hand)
	if bytes.Equal(key, c.hand) && key != nil {
		key, record = cursor.Next()
	}
	wrapped := false
	for looked := 0; freed < size && looked < evictedInOne; looked++ {
		if key == nil {
			if wrapped {
				break
			}
			wrapped = true
			if key, record = cursor.First(); key == nil {
				break
			}
		}
		c.hand = append(c.hand[:0], key...)
		dead := garbage(key, record)
		if !dead && c.spared(key) {
			key, record = cursor.Next()
			continue
		}
		n := int64(len(key) + len(record))
		if err := cursor.Delete(); err != nil {
			return evicted, records, freed, err
		}
		freed += n
		records++
		if !dead {
			evicted++
		}
		// After a deletion the position of the cursor is undefined.
		key, record = cursor.Seek(c.hand)
	}
	return evicted, records, freed, nil
}
