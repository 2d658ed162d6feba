package disk

import (
	"bytes"
	"crypto/sha256"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
)

// A record has the beginning of the digest of its body, and a document from a record passes it
// on to the next record: frontends send the same tag for a body, wherever it comes from.
func TestRecordBringsTheDigest(t *testing.T) {
	for _, body := range []string{"1", `{"id":1}`, string(bytes.Repeat([]byte("x"), 100_000))} {
		digest := sha256.Sum256([]byte(body))
		k := appendKey(nil, 3, "id")
		record := appendRecord(nil, k, 7, document(body, 5))
		s, found, err := storedOf(k, record, 7)
		if err != nil || !found || string(s.Body) != body || !s.Summed {
			t.Fatalf("%t, %v, %d bytes of %d, summed: %t", found, err, len(s.Body), len(body), s.Summed)
		}
		if got := s.Body[len(s.Body) : len(s.Body)+cache.SumSize]; !bytes.Equal(got, digest[:cache.SumSize]) {
			t.Errorf("%d bytes: %x after the body, want %x", len(body), got, digest[:cache.SumSize])
		}
		for i := range record { // the digest too is under the checksum
			record[i] ^= 4
			if _, found, err := storedOf(k, record, 7); err == nil && found {
				t.Errorf("a damaged byte %d of %d went unnoticed", i, len(record))
			}
			record[i] ^= 4
			if i == 200 {
				break
			}
		}
		last := len(record) - 1
		record[last] ^= 4
		if _, _, err := storedOf(k, record, 7); err == nil {
			t.Error("a damaged digest went unnoticed")
		}
	}
}
