package disk

import (
	"crypto/sha256"
	"encoding/binary"
	"errors"
	"fmt"
	"hash/crc32"
	"time"

	"github.com/slipstream-go/slipstream/cache"
)

// Format is the version of the file's format. Another version is upgraded if upgrades has a
// way, else refused.
const Format = 1

// A record is, all big endian: epoch of its resource (4 bytes), XMin (8), when its load began
// on the cache's clock (8), CRC-32C of the key and of the record without the checksum (4),
// the JSON, and the beginning of its SHA-256 (16): entity tags are made from it, and computing
// it for each answer took 7 % of the CPU time of a hit. It follows the JSON so that one copy
// includes both.
const (
	atEpoch, atXMin, atLoaded, atSum, atBody = 0, 4, 12, 20, 24

	// recordExtra is the size of a record in addition to the JSON.
	recordExtra = atBody + cache.SumSize
)

// A key is the number of its resource in this file (4 bytes, big endian) and the ID.
const keyHead = 4

// maxID is how long an ID may be: bbolt allows keys of 32 KiB.
const maxID = 32<<10 - keyHead - 1

var (
	castagnoli = crc32.MakeTable(crc32.Castagnoli)
	errDamaged = errors.New("a record does not match its checksum")
)

func appendKey(b []byte, number uint32, id string) []byte {
	return append(binary.BigEndian.AppendUint32(b, number), id...)
}

// appendRecord appends the record of a document.
func appendRecord(b, key []byte, epoch uint32, d *cache.Document) []byte {
	from := len(b)
	b = binary.BigEndian.AppendUint32(b, epoch)
	b = binary.BigEndian.AppendUint64(b, uint64(d.XMin()))
	b = binary.BigEndian.AppendUint64(b, uint64(d.LoadedAt()))
	b = append(b, 0, 0, 0, 0)
	b = append(b, d.Body()...)
	if known := d.Sum(); known != nil {
		b = append(b, known...)
	} else {
		made := sha256.Sum256(d.Body())
		b = append(b, made[:cache.SumSize]...)
	}
	binary.BigEndian.PutUint32(b[from+atSum:], sum(key, b[from:], b[from+atBody:]))
	return b
}

// sum is the checksum of a record, without its own field in the head.
func sum(key, head, rest []byte) uint32 {
	s := crc32.Update(0, castagnoli, key)
	s = crc32.Update(s, castagnoli, head[:atSum])
	return crc32.Update(s, castagnoli, rest)
}

// check returns an error for a record that is damaged.
func check(key, record []byte) error {
	if len(record) < recordExtra || binary.BigEndian.Uint32(record[atSum:]) != sum(key, record, record[atBody:]) {
		return fmt.Errorf("key %x, %d bytes: %w", key[:min(len(key), 64)], len(record), errDamaged)
	}
	return nil
}

func epochOf(record []byte) uint32 { return binary.BigEndian.Uint32(record[atEpoch:]) }

// storedOf copies a document of the epoch from its record; found is false if it is of another. The
// copy is checked: the record may be changing at this moment, if another process writes to the
// file.
func storedOf(key, record []byte, epoch uint32) (s cache.Stored, found bool, err error) {
	if len(record) < recordExtra {
		return s, false, check(key, record)
	}
	head := [atBody]byte(record)
	if epochOf(head[:]) != epoch {
		return s, false, nil
	}
	rest := append([]byte(nil), record[atBody:]...)
	if binary.BigEndian.Uint32(head[atSum:]) != sum(key, head[:], rest) {
		return s, false, fmt.Errorf("key %x, %d bytes: %w", key[:min(len(key), 64)], len(record), errDamaged)
	}
	return cache.Stored{
		Body:     rest[:len(rest)-cache.SumSize],
		Summed:   true,
		XMin:     cache.Tx(binary.BigEndian.Uint64(head[atXMin:])),
		LoadedAt: time.Duration(binary.BigEndian.Uint64(head[atLoaded:])),
	}, true, nil
}

func numberOf(key []byte) uint32 { return binary.BigEndian.Uint32(key) }
