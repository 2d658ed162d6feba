package iproto

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"
)

// hostile are inputs that no reader may trust.
var hostile = map[string][]byte{
	"string of 4 GiB":                       {str32, 0xff, 0xff, 0xff, 0xff, 'x'},
	"string of 2 GiB":                       {str32, 0x7f, 0xff, 0xff, 0xff, 'x'},
	"string of one too many":                {str32, 0, 0, 0, 2, 'x'},
	"binary of 4 GiB":                       {bin32, 0xff, 0xff, 0xff, 0xff, 'x'},
	"extension of 4 GiB":                    {ext32, 0xff, 0xff, 0xff, 0xff, 1, 'x'},
	"array of 4 Gi":                         {array32, 0xff, 0xff, 0xff, 0xff, 1},
	"array of one too many":                 {fixArray | 2, 1},
	"map of 4 Gi":                           {map32, 0xff, 0xff, 0xff, 0xff, 1, 1},
	"map of 2 Gi":                           {map32, 0x80, 0, 0, 0, 1, 1},
	"map of 2 Gi and 1":                     {map32, 0x80, 0, 0, 1, 1, 1},
	"map without the last value":            {fixMap | 1, 1},
	"array of array16 to the end":           bytes.Repeat([]byte{array16, 0xff, 0xff}, 30_000),
	"arrays that claim all following bytes": claims(array32, 5, 1000, 64<<10),
	"maps that claim all following bytes":   claims(map32, 10, 1000, 64<<10),
	"strings in claiming arrays":            append(bytes.Repeat([]byte{array16, 0xff, 0}, 200), bytes.Repeat([]byte{fixStr}, 0xff00)...),
	"errors that claim all following bytes": bytes.Repeat([]byte{ext32, 0, 0, 0xff, 0xff, byte(TypeError), fixMap | 1, 0, array16, 0xff, 0xff}, 5000),
	"depth without an end":                  bytes.Repeat([]byte{fixArray | 1}, 100_000),
	"depth of maps without an end":          bytes.Repeat([]byte{fixMap | 1, 0}, 100_000),
	"unused byte":                           {unused},
	"unused byte after an array":            {fixArray | 1, unused},
	"half a float":                          {float64b, 1, 2, 3, 4},
	"half an integer":                       {uint64b, 1, 2, 3},
	"length that is cut off":                {str32, 0, 0, 0},
	"extension without a type":              {ext8, 0},
	"fixed extension without its data":      {fixExt16, 1, 0},
}

// claims returns nested arrays or maps, each of which claims all bytes after it, followed by zeros.
func claims(code byte, each, depth, size int) []byte {
	var b []byte
	for i := range depth {
		left := size - (i+1)*5
		n := left / (each / 5)
		b = append(b, code, byte(n>>24), byte(n>>16), byte(n>>8), byte(n))
	}
	return append(b, make([]byte, size-len(b))...)
}

// TestHostile: nothing panics, nothing is trusted, and allocations are bounded by the size of the
// input.
func TestHostile(t *testing.T) {
	for name, in := range hostile {
		for read, f := range reads {
			var err error
			used := allocated(func() {
				d := NewDecoder(in)
				f(&d)
				err = d.Err()
			})
			if bound := uint64(64*len(in) + 4096); used > bound {
				t.Errorf("%s, %s: %d bytes allocated for %d, want at most %d", name, read, used, len(in), bound)
			}
			// Arrays and maps may have a valid start.
			if err == nil && read != "array" && read != "map" && read != "ext" {
				t.Errorf("%s, %s: no error", name, read)
			}
			if err != nil && !errors.As(err, new(*DecodeError)) {
				t.Errorf("%s, %s: error %v of type %T", name, read, err, err)
			}
		}
	}
}

// allocated returns the number of bytes that f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// The memory of valid values, which claim no more than they have, is also a bounded multiple of
// their size.
func TestMemoryOfValidInput(t *testing.T) {
	const n = 1 << 16
	for name, in := range map[string][]byte{
		"nils":          append(append32(nil, array32, n), bytes.Repeat([]byte{codeNil}, n)...),
		"empty arrays":  append(append32(nil, array32, n), bytes.Repeat([]byte{fixArray}, n)...),
		"empty maps":    append(append32(nil, array32, n), bytes.Repeat([]byte{fixMap}, n)...),
		"empty strings": append(append32(nil, array32, n), bytes.Repeat([]byte{fixStr}, n)...),
		"small maps":    append(append32(nil, array32, n), bytes.Repeat([]byte{fixMap | 1, 1, 1}, n)...),
		"equal keys":    append(append32(nil, map32, n), bytes.Repeat([]byte{1, codeNil}, n)...),
		"errors":        append(append32(nil, array32, n/8), bytes.Repeat([]byte{fixExt4, byte(TypeError), fixMap | 1, 0, fixArray | 1, fixMap}, n/8)...),
	} {
		d := NewDecoder(in)
		used := allocated(func() { d.Any() })
		if bound := uint64(512 * len(in)); d.Err() != nil || used > bound {
			t.Errorf("%s: %d bytes allocated for %d (%d times), %v", name, used, len(in), used/uint64(len(in)), d.Err())
		}
	}
}

// Depth costs no stack beyond MaxDepth, whatever is nested.
func TestDepth(t *testing.T) {
	nest := func(depth int, around string, inner []byte) []byte {
		for i := range depth {
			switch {
			case around == "array" || around == "mixed" && i%3 == 0:
				inner = append([]byte{fixArray | 1}, inner...)
			case around == "map" || around == "mixed" && i%3 == 1:
				inner = append([]byte{fixMap | 1, 1}, inner...)
			default: // an error with a field
				e := append([]byte{fixMap | 1, 0, fixArray | 1, fixMap | 1, errorFields, fixMap | 1, fixStr | 1, 'f'}, inner...)
				inner = AppendExt(nil, TypeError, e)
			}
		}
		return inner
	}
	for _, around := range []string{"array", "map", "error", "mixed"} {
		for depth, ok := range map[int]bool{1: true, MaxDepth: true, MaxDepth + 1: false, 10_000: false} {
			in := nest(depth, around, []byte{1})
			d := NewDecoder(in)
			v := d.Any()
			if (d.Err() == nil) != ok || (v == nil) == ok {
				t.Errorf("%d %ss: %v", depth, around, d.Err())
			}
			if !ok && !strings.Contains(d.Err().Error(), "at most 128") {
				t.Errorf("%d %ss: %v", depth, around, d.Err())
			}
			d.Reset(in)
			if raw := d.Raw(); d.Err() != nil || len(raw) != len(in) {
				t.Errorf("Raw of %d %ss: %d of %d bytes, %v", depth, around, len(raw), len(in), d.Err())
			}
		}
	}
	d := NewDecoder(nest(10_000, "error", []byte{1}))
	if e := d.Error(); e != nil || d.Err() == nil {
		t.Errorf("Error of 10000 errors: %v", d.Err())
	}
}

// A stack of errors may have any length; only its start is kept.
func TestLongStack(t *testing.T) {
	stack := append(AppendArray([]byte{fixMap | 1, 0}, 1000), bytes.Repeat([]byte{fixMap}, 1000)...)
	d := NewDecoder(AppendExt(nil, TypeError, stack))
	n := 0
	for e := d.Error(); e != nil; e = e.Cause {
		n++
	}
	if n != longestStack || d.Err() != nil {
		t.Errorf("%d errors, %v", n, d.Err())
	}
}
