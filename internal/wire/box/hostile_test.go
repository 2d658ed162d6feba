package box

import (
	"bytes"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/tarantool/iproto"
)

// hostile contains values that every reader must reject.
var hostile = map[string][]byte{
	"string of 4 GiB":             {0xdb, 0xff, 0xff, 0xff, 0xff, 'x'},
	"binary of 4 GiB":             {0xc6, 0xff, 0xff, 0xff, 0xff, 'x'},
	"extension of 4 GiB":          {0xc9, 0xff, 0xff, 0xff, 0xff, 1, 'x'},
	"array of 4 Gi":               {array32, 0xff, 0xff, 0xff, 0xff, 1},
	"array of one too many":       {fixArray | 2, 1},
	"map of 2 Gi and 1":           {0xdf, 0x80, 0, 0, 1, 1, 1},
	"map without the last value":  {fixMap | 1, 1},
	"array of array16 to the end": bytes.Repeat([]byte{0xdc, 0xff, 0xff}, 30_000),
	"depth without an end":        bytes.Repeat([]byte{fixArray | 1}, 100_000),
	"unused byte":                 {0xc1},
	"half an integer":             {uint64b, 1, 2, 3},
	"length that is cut off":      {0xdb, 0, 0, 0},
	"extension without a type":    {0xc7, 0},
}

// TestHostile checks that no body or header that contains such a value is accepted.
func TestHostile(t *testing.T) {
	for name, in := range hostile {
		for _, code := range []uint32{0, 0x8001} {
			for _, key := range []Key{KeyData, KeyErrorText, KeyError, KeyMetadata, KeyPosition, KeyFeatures, KeyStatementID, 0x7f} {
				body := append([]byte{fixMap | 2, 0x7e, 0, byte(key)}, in...)
				if r, err := ParseBody(code, body); err == nil {
					t.Errorf("%s as %x of a body: %+v", name, key, r)
				}
			}
		}
		for _, key := range []byte{0, 1, 5, 0x0a, 0x7f} {
			header := append([]byte{fixMap | 1, key}, in...)
			frame := append(append32(nil, uint32b, uint32(len(header))), header...)
			if m, err := new(Scanner).Scan(frame); err == nil {
				t.Errorf("%s as %x of a header: %+v", name, key, m)
			}
			if r, err := ScanRequest(frame, 0); err == nil {
				t.Errorf("%s as %x of a request's header: %+v", name, key, r)
			}
		}
	}
}

// TestDepthOfErrors checks that nested errors use no more stack than iproto.MaxDepth allows.
func TestDepthOfErrors(t *testing.T) {
	field := []byte{fixMap | 1, 0, fixArray | 1, fixMap | 1, 6, fixMap | 1, 0xa1, 'f'}
	inner := []byte{1}
	for range 1000 {
		inner = iproto.AppendExt(nil, iproto.TypeError, append(bytes.Clone(field), inner...))
	}
	_, err := ParseBody(0x8001, append(append([]byte{fixMap | 1, byte(KeyError)}, field...), inner...))
	if err == nil || !strings.Contains(err.Error(), "at most 128") {
		t.Errorf("ParseBody of 1000 errors: %v", err)
	}
}
