package thrift_test

import (
	"bytes"
	"errors"
	"runtime"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
)

func TestInputTruncatedAtEveryByteIsAnError(t *testing.T) {
	for _, c := range codecs {
		b := c.append(full())
		for n := range b {
			for _, v := range []*Order{{}, full()} {
				_, err := c.read(new(thrift.Reader), b[:n:n], v)
				var e *thrift.Error
				if !errors.As(err, &e) || e.Code != thrift.CodeShort && e.Code != thrift.CodeLength || e.Offset > n || e.Offset < 0 {
					t.Fatalf("%s, %d bytes of %d: %v", c.name, n, len(b), err)
				}
			}
		}
	}
}

func TestSkipOfTruncatedInputIsAnError(t *testing.T) {
	b, c := full().AppendThrift(nil), full().AppendCompact(nil)
	if n := thrift.Skip(b, 0, thrift.TypeStruct, thrift.MaxDepth); n != len(b) {
		t.Errorf("Skip returned %d of %d", n, len(b))
	}
	if n := thrift.SkipCompact(c, 0, thrift.CompactTypeStruct, thrift.MaxDepth); n != len(c) {
		t.Errorf("SkipCompact returned %d of %d", n, len(c))
	}
	for n := range b {
		if thrift.Skip(b[:n:n], 0, thrift.TypeStruct, thrift.MaxDepth) >= 0 {
			t.Fatalf("Skip accepted %d bytes of %d", n, len(b))
		}
	}
	for n := range c {
		if thrift.SkipCompact(c[:n:n], 0, thrift.CompactTypeStruct, thrift.MaxDepth) >= 0 {
			t.Fatalf("SkipCompact accepted %d bytes of %d", n, len(c))
		}
	}
}

const id = "0a0001 0000000000000001 "

// Each input has one mistake, and the path of the error leads to it.
func TestErrorsLeadToTheField(t *testing.T) {
	for _, c := range []struct {
		what, in string
		code     int
		path     string
		offset   int
	}{
		{"nothing", "", thrift.CodeShort, "", 0},
		{"no stop", id, thrift.CodeShort, "", 11},
		{"required field missing", "00", thrift.CodeMissing, "", 0},
		{"required field of another type", "080001 00000001 00", thrift.CodeMissing, "", 7},
		{"short number", "0a0001 0000", thrift.CodeShort, "1", 3},
		{"length of a string", id + "0b0008 0000000a 61 00", thrift.CodeLength, "8", 14},
		{"negative length", id + "0b0008 ffffffff 00", thrift.CodeLength, "8", 14},
		{"length that wraps", id + "0b0008 7fffffff 00", thrift.CodeLength, "8", 14},
		{"count of 2^31-1", id + "0f000b 0a 7fffffff 00", thrift.CodeLength, "11", 14},
		{"count that wraps when multiplied", id + "0f000b 0a 20000001 0000000000000000 00", thrift.CodeLength, "11", 14},
		{"negative count", id + "0f000b 0a ffffffff 00", thrift.CodeLength, "11", 14},
		{"type of elements", id + "0f000b 08 00000001 00000001 00", thrift.CodeElem, "11", 14},
		{"type of keys", id + "0d000d 08 0b 00000001 00000001 00000000 00", thrift.CodeElem, "13", 14},
		{"type of values", id + "0d000d 0b 08 00000001 00000000 00000001 00", thrift.CodeElem, "13", 14},
		{"entries", id + "0d000d 0b 0b 00000002 00000000 00000000 00", thrift.CodeLength, "13", 14},
		{"key", id + "0d000d 0b 0b 00000001 00000009 61 00000000 00", thrift.CodeLength, "13[0].key", 20},
		{"value", id + "0d000d 0b 0b 00000001 00000000 00000009 00", thrift.CodeLength, "13[0].value", 24},
		{"string in a set", id + "0e000c 0b 00000002 00000000 00000005 00", thrift.CodeLength, "12[1]", 23},
		{"structs without their field", id + "0f000f 0c 00000001 00 0000000000000000000000000000 00", thrift.CodeMissing, "15[0]", 19},
		{"field of a struct", id + "0f000f 0c 00000001 " + id + "0b0008 00ffffff 00 00", thrift.CodeLength, "15[0].8", 33},
		{"parent", id + "0c000e 0b0008 00ffffff 00 00", thrift.CodeLength, "14.8", 17},
		{"unknown field", id + "0c0064 0b0008 00ffffff 00 00", thrift.CodeLength, "100.8", 17},
		{"unknown list", id + "0f0064 0a 7fffffff 00", thrift.CodeLength, "100", 14},
		{"unknown map", id + "0d0064 0a 0a 7fffffff 00", thrift.CodeLength, "100", 14},
		{"unknown type", id + "11ffff 00", thrift.CodeType, "-1", 14},
		{"unknown type of elements", id + "0f0064 11 00000001 00 00", thrift.CodeType, "100[0]", 19},
		{"list in a map", id + "0d0028 08 0f 00000001 00000002 0a 00000001 0000000000000000 00", thrift.CodeElem, "40[0].value", 24},
	} {
		var e *thrift.Error
		if err := thrift.Unmarshal(unhex(t, c.in), new(Order)); !errors.As(err, &e) {
			t.Errorf("%s: %v", c.what, err)
		} else if e.Code != c.code || e.Path != c.path || e.Offset != c.offset {
			t.Errorf("%s: code %d, path %q, offset %d; want %d, %q, %d", c.what, e.Code, e.Path, e.Offset, c.code, c.path, c.offset)
		} else if slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("%s: the outcome is %v", c.what, slipstream.OutcomeOf(err))
		}
	}
}

func TestCompactErrorsLeadToTheField(t *testing.T) {
	const id = "1602 "
	for _, c := range []struct {
		what, in string
		code     int
		path     string
		offset   int
	}{
		{"nothing", "", thrift.CodeShort, "", 0},
		{"no stop", id, thrift.CodeShort, "", 2},
		{"required field missing", "00", thrift.CodeMissing, "", 0},
		{"bool is the stop", "2100", thrift.CodeMissing, "", 1},
		{"i64 of eleven bytes", "16 ffffffffffffffffffff01 00", thrift.CodeNumber, "1", 1},
		{"i64 of 65 bits", "16 ffffffffffffffffff02 00", thrift.CodeNumber, "1", 1},
		{"i32 of 33 bits", id + "45 8080808010 00", thrift.CodeNumber, "5", 3},
		{"i16 of 17 bits", id + "34 808004 00", thrift.CodeNumber, "4", 3},
		{"ID of 17 bits", id + "05 808004 00 00", thrift.CodeNumber, "", 2},
		{"length of a string", id + "78 0a 61 00", thrift.CodeLength, "8", 3},
		{"length of 2^32-1", id + "78 ffffffff0f 00", thrift.CodeLength, "8", 3},
		{"length of 2^64-1", id + "78 ffffffffffffffffff01 00", thrift.CodeLength, "8", 3},
		{"count", id + "a9 e6 00", thrift.CodeLength, "11", 3},
		{"count of 2^31-1", id + "a9 f6 ffffffff07 00", thrift.CodeLength, "11", 3},
		{"type of elements", id + "a9 15 00 00", thrift.CodeElem, "11", 3},
		{"no type", id + "e9 10 00 00", thrift.CodeType, "15", 3},
		{"entries", id + "cb 0a 88 00", thrift.CodeLength, "13", 3},
		{"type of keys", id + "cb 01 58 00 00 00", thrift.CodeElem, "13", 3},
		{"value", id + "cb 01 88 00 09 00", thrift.CodeLength, "13[0].value", 6},
		{"field of a struct", id + "e9 1c 1602 78 7f 00 00", thrift.CodeLength, "15[0].8", 7},
		{"element of a list", id + "a9 26 00 ffffffffffffffffff02 00", thrift.CodeNumber, "11[1]", 5},
		{"struct without its field", id + "e9 1c 00 00", thrift.CodeMissing, "15[0]", 4},
		{"unknown field", id + "0c c801 87 00 00", thrift.CodeShort, "100.8", 6},
		{"unknown type", id + "1e 00", thrift.CodeType, "", 2},
	} {
		var e *thrift.Error
		if err := thrift.UnmarshalCompact(unhex(t, c.in), new(Order)); !errors.As(err, &e) {
			t.Errorf("%s: %v", c.what, err)
		} else if e.Code != c.code || e.Path != c.path || e.Offset != c.offset {
			t.Errorf("%s: code %d, path %q, offset %d; want %d, %q, %d", c.what, e.Code, e.Path, e.Offset, c.code, c.path, c.offset)
		}
	}
}

func TestErrorSaysWhereAndWhat(t *testing.T) {
	err := thrift.Unmarshal(unhex(t, id+"0c000e 0b0008 00ffffff 00 00"), new(Order))
	if got, want := err.Error(), "thrift: field parent.name: a length exceeds the input, at byte 17"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
	for code := thrift.CodeShort; code >= thrift.CodeUnion; code-- {
		if s := (&thrift.Error{Code: code, Path: "7"}).Error(); !strings.HasPrefix(s, "thrift: field 7: ") || strings.Contains(s, "error -") {
			t.Errorf("code %d has no text: %s", code, s)
		}
	}
}

// nest returns n nested structs, each in a field with the given head, and each with its ID.
func nest(t *testing.T, head, id string, n int) []byte {
	return unhex(t, strings.Repeat(id+head, n-1)+id+strings.Repeat("00", n))
}

func TestDepthIsBounded(t *testing.T) {
	for i, c := range codecs {
		for what, heads := range map[string][2]string{
			"known":   {"0c000e ", "dc "},     // field 14
			"unknown": {"0c0064 ", "0c c801"}, // field 100
		} {
			id := [2]string{id, "1602 "}[i]
			if _, err := c.read(new(thrift.Reader), nest(t, heads[i], id, thrift.MaxDepth), new(Order)); err != nil {
				t.Errorf("%s, %s: %d levels: %v", c.name, what, thrift.MaxDepth, err)
			}
			var e *thrift.Error
			if _, err := c.read(new(thrift.Reader), nest(t, heads[i], id, thrift.MaxDepth+1), new(Order)); !errors.As(err, &e) || e.Code != thrift.CodeDeep || strings.Count(e.Path, ".") != thrift.MaxDepth-1 {
				t.Errorf("%s, %s: %d levels: %v", c.name, what, thrift.MaxDepth+1, err)
			}
		}
	}
	lists := unhex(t, id+"0f0064"+strings.Repeat("0f00000001", 100)+"0f00000000"+"00")
	var e *thrift.Error
	if err := thrift.Unmarshal(lists, new(Order)); !errors.As(err, &e) || e.Code != thrift.CodeDeep {
		t.Errorf("100 nested lists: %v", err)
	}
}

// allocated returns how many bytes f allocates.
func allocated(f func()) uint64 {
	var before, after runtime.MemStats
	runtime.ReadMemStats(&before)
	f()
	runtime.ReadMemStats(&after)
	return after.TotalAlloc - before.TotalAlloc
}

// Bombs are small inputs that announce large values. MaxMemory bounds the memory that is allocated
// for them.
func TestBombsDoNotAllocate(t *testing.T) {
	const compactID = "1602 "
	tail := strings.Repeat("00", 1<<16)
	for what, in := range map[string]string{
		"list of structs that ends":     id + "0f000f 0c 7fffffff",
		"list of structs":               id + "0f000f 0c 00001000" + tail,
		"list of numbers":               id + "0f000b 0a 7fffffff" + tail,
		"set of strings":                id + "0e000c 0b 7fffffff" + tail,
		"map":                           id + "0d000d 0b 0b 7fffffff" + tail,
		"unknown list of empty structs": id + "0f0064 0c 7fffffff" + tail,
		"list of structs again and again": id + strings.Repeat("0f000f 0c 00000020"+strings.Repeat(id+"00", 32), 100) +
			strings.Repeat("0f000f 0c 00001000", 100) + tail,
		"nested structs": strings.Repeat(id+"0c000e ", 100) + tail,

		"Compact: list of structs that ends":     compactID + "e9 fc ffffffff07",
		"Compact: list of structs":               compactID + "e9 fc 808004" + tail,
		"Compact: list of numbers":               compactID + "a9 f6 ffffffff07" + tail,
		"Compact: set of strings":                compactID + "ba f8 ffffffff07" + tail,
		"Compact: map":                           compactID + "cb ffffffff07 88" + tail,
		"Compact: map of as many as bytes":       compactID + "cb 808002 88" + tail + "ff",
		"Compact: unknown list of empty structs": compactID + "09 c801 fc ffffffff07" + tail,
		"Compact: unknown strings":               compactID + strings.Repeat("08 c801 00 ", 1<<16),
	} {
		b := unhex(t, in)
		got := allocated(func() {
			read := thrift.Unmarshal(b, new(Order))
			if strings.HasPrefix(what, "Compact") {
				read = thrift.UnmarshalCompact(b, new(Order))
			}
			if read == nil {
				t.Errorf("%s is accepted", what)
			}
		})
		if limit := uint64(64*len(b) + 8<<20); got > limit {
			t.Errorf("%s: %d bytes allocated for %d, limit %d", what, got, len(b), limit)
		}
	}
}

// Reading a bomb into a used value allocates no more memory than reading it into a new value.
func TestBombsDoNotAllocateForUsedValues(t *testing.T) {
	to := full()
	var r thrift.Reader
	in := unhex(t, id+strings.Repeat("0f000b 0a 00000001 0000000000000000", 1000)+strings.Repeat("0d000d 0b 0b 00000001 00000000 00000000", 1000)+
		strings.Repeat("0b0008 00000001 61", 1000)+"0f000f 0c 00010000 00")
	got := allocated(func() {
		for range 10 {
			r.Recycle()
			if _, err := r.Read(in, 0, to); err == nil {
				t.Error("the input is accepted")
			}
		}
	})
	if limit := uint64(10 * 64 * len(in)); got > limit {
		t.Errorf("%d bytes allocated for ten times %d, limit %d", got, len(in), limit)
	}
}

func TestMemoryIsLimited(t *testing.T) {
	v := full()
	v.Lines = append(v.Lines, make([]Order, 1000)...)
	for _, c := range codecs {
		b := c.append(v)
		var e *thrift.Error
		if _, err := c.read(&thrift.Reader{MaxMemory: 100_000}, b, new(Order)); !errors.As(err, &e) || e.Code != thrift.CodeMemory || e.Path != "15" {
			t.Errorf("%s: %v", c.name, err)
		}
		if _, err := c.read(&thrift.Reader{MaxMemory: 1 << 20}, b, new(Order)); err != nil {
			t.Errorf("%s: %v", c.name, err)
		}
	}
	// Each of the nested structs is larger in Go than in the input.
	b := nest(t, "0c000e ", id, 50)
	var e *thrift.Error
	r := thrift.Reader{MaxMemory: 4000}
	if _, err := r.Read(b, 0, new(Order)); !errors.As(err, &e) || e.Code != thrift.CodeMemory {
		t.Errorf("nested structs: %v", err)
	}
}

// In the Compact protocol, an unknown bool is one byte of the input, but four bytes when it is
// kept.
func TestUnknownBoolsCountAsMemory(t *testing.T) {
	b := append(bytes.Repeat([]byte{0x11}, 1000), 0) // true, with the ID after the previous one
	r := thrift.Reader{MaxMemory: 1000}
	r.Begin(len(b))
	var u thrift.Unknown
	off := 0
	for last := uint16(100); off >= 0 && off < len(b)-1; {
		var key uint32
		if key, off = thrift.CompactField(b, off, last); off >= 0 {
			off, last = r.KeepCompact(b, off, key, 10, &u), uint16(key>>8)
		}
	}
	if off != thrift.CodeMemory || len(u) > 1000 {
		t.Errorf("%d, with %d bytes kept; want CodeMemory", off, len(u))
	}
}
