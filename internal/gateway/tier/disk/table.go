package disk

import (
	"encoding/binary"
	"encoding/json"
	"fmt"
	"hash/crc32"
	"sync/atomic"

	bolt "go.etcd.io/bbolt"

	"github.com/slipstream-go/slipstream/cache"
)

// Names of buckets and of keys of the bucket meta.
var (
	bucketDocs = []byte("docs")
	bucketMeta = []byte("meta")

	metaFormat   = []byte("format")   // a decimal number
	metaState    = []byte("state")    // JSON of state, see writeJSON
	metaPosition = []byte("position") // JSON of cache.Position; missing if there is none
)

// state is the metadata of the file, written with every transaction that changes it.
type state struct {
	Next      uint32 // number of the next resource
	Documents int64  // in the bucket docs, including unreachable ones
	Bytes     int64  // of their keys and records
	Resources map[string]stored
}

// stored is a resource as the file knows it.
type stored struct {
	Number      uint32
	Epoch       uint32
	Fingerprint string
	// Boot identifies the boot of the machine during which its documents were written: the
	// cache's clock is not valid in another.
	Boot string
}

// Resource is what the tier must know about a resource of the cache.
type Resource struct {
	// Name finds its documents again after a restart.
	Name string
	// Fingerprint identifies how documents are made from rows. If it changes, earlier
	// documents are dropped.
	Fingerprint string
	// Aged says that documents are bounded only by their age. It is unknown after a reboot,
	// so they are dropped then.
	Aged bool
}

// numbers are the numbers of resources in the file, by their index in the cache. Immutable.
type numbers []uint32

// table knows the resources.
type table struct {
	// Owned by Open, Define and the writer, one after the other: guarded by overlay.mu.
	state state
	names []string // of the resources of the cache; "" once another has its name

	// Atomics. Written by Define, read by all.
	numbers atomic.Pointer[numbers]
}

// readState reads the metadata of the file; a new file has none.
func readState(tx *bolt.Tx) (s state, p cache.Position, err error) {
	meta := tx.Bucket(bucketMeta)
	if err := readJSON(meta, metaState, &s); err != nil {
		return s, p, err
	}
	if err := readJSON(meta, metaPosition, &p); err != nil {
		return s, p, err
	}
	if s.Resources == nil {
		s.Resources = make(map[string]stored)
	}
	return s, p, nil
}

// The values of the bucket meta are CRC-32C of key and text, big endian, and the text. They
// decide whether documents are right, and bbolt only has checksums for its own meta pages.
func writeJSON(b *bolt.Bucket, key []byte, value any) error {
	text, err := json.Marshal(value)
	if err != nil {
		return err
	}
	return b.Put(key, append(binary.BigEndian.AppendUint32(nil, sumText(key, text)), text...))
}

// readJSON does not change value if the file has none.
func readJSON(b *bolt.Bucket, key []byte, value any) error {
	text := b.Get(key)
	if text == nil {
		return nil
	}
	if len(text) < 4 || binary.BigEndian.Uint32(text) != sumText(key, text[4:]) {
		return fmt.Errorf("%s: %w", key, errDamaged)
	}
	if err := json.Unmarshal(text[4:], value); err != nil {
		return fmt.Errorf("%s: %w", key, err)
	}
	return nil
}

func sumText(key, text []byte) uint32 {
	return crc32.Update(crc32.Checksum(key, castagnoli), castagnoli, text)
}

// define sets the resource at an index. Known documents stay if they are made in the same way.
// Under overlay.mu.
func (t *table) define(at cache.ResourceID, r Resource, boot string, epochs []uint32) (epoch uint32) {
	known, found := t.state.Resources[r.Name]
	if !found || known.Fingerprint != r.Fingerprint {
		known = stored{Number: t.state.Next, Epoch: 1, Fingerprint: r.Fingerprint}
		t.state.Next++
	} else if r.Aged && (boot == "" || known.Boot != boot) {
		known.Epoch++
	}
	known.Boot = boot
	now := append(numbers{}, *t.numbers.Load()...)
	for i, name := range t.names {
		if name != r.Name {
			continue
		}
		if now[i] == known.Number {
			// It was retired by a reload, and its changes were missed since: none of its
			// former epochs may be reused.
			known.Epoch = max(known.Epoch, epochs[i]) + 1
		}
		t.names[i], now[i] = "", retired // it no longer finds or writes anything
	}
	t.state.Resources[r.Name] = known
	for len(now) <= int(at) {
		now, t.names = append(now, retired), append(t.names, "")
	}
	now[at], t.names[at] = known.Number, r.Name
	t.numbers.Store(&now)
	return known.Epoch
}

// retired is the number of indexes without a resource.
const retired = ^uint32(0)

// number returns the number of a resource.
func (t *table) number(r cache.ResourceID) (uint32, bool) {
	n := *t.numbers.Load()
	if int(r) >= len(n) || n[r] == retired {
		return 0, false
	}
	return n[r], true
}

// current returns the epoch of each number that is in use.
func (t *table) current(epochs []uint32) map[uint32]uint32 {
	n := *t.numbers.Load()
	current := make(map[uint32]uint32, len(n))
	for i, number := range n {
		if number != retired && i < len(epochs) && t.names[i] != "" {
			current[number] = epochs[i]
		}
	}
	return current
}
