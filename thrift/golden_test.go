package thrift_test

import (
	"bytes"
	"encoding/hex"
	"fmt"
	"math"
	"reflect"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
)

// unhex decodes hexadecimal digits; spaces and comments that start with // are ignored.
func unhex(t testing.TB, s string) []byte {
	t.Helper()
	var digits strings.Builder
	for line := range strings.Lines(s) {
		line, _, _ = strings.Cut(line, "//")
		digits.WriteString(strings.Join(strings.Fields(line), ""))
	}
	b, err := hex.DecodeString(digits.String())
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// codec is one of the two protocols.
type codec struct {
	name   string
	append func(v *Order) []byte
	read   func(r *thrift.Reader, b []byte, v *Order) (int, error)
}

var codecs = []codec{
	{
		"binary",
		func(v *Order) []byte { return v.AppendThrift(nil) },
		func(r *thrift.Reader, b []byte, v *Order) (int, error) { return r.Read(b, 0, v) },
	},
	{
		"compact",
		func(v *Order) []byte { return v.AppendCompact(nil) },
		func(r *thrift.Reader, b []byte, v *Order) (int, error) { return r.ReadCompact(b, 0, v) },
	},
}

func empty() *Order {
	return &Order{Codes: []int64{}, Tags: []string{}, Lines: []Order{}}
}

func full() *Order {
	p := empty()
	p.ID, p.Paid, p.Small, p.Medium = math.MinInt64, true, -1, -300
	p.Quantity = thrift.Some[int32](math.MinInt32)
	p.Price = thrift.Some(-0.5)
	p.Key = thrift.UUID{0: 1, 15: 255}
	p.Name = thrift.Some("name \xff")
	p.Payload = []byte{}
	p.Status = thrift.Some(Status(77))
	p.Codes = []int64{1, -1, math.MaxInt64}
	p.Tags = []string{"a", "", strings.Repeat("long", 300)}
	p.Attrs = map[string]string{"": "empty", "k": "", "key": "value"}
	p.States = map[int32][]Status{-5: {0, 1}, 7: {}}
	parent := empty()
	parent.ID = 1
	p.Parent = parent
	for i := range 20 {
		line := *empty()
		line.ID, line.Name = int64(i)<<40, thrift.Some(fmt.Sprint("line ", i))
		line.Codes = []int64{int64(i)}
		p.Lines = append(p.Lines, line)
	}
	return p
}

func TestEncodingIsThatOfTheSpecification(t *testing.T) {
	v := empty()
	v.ID, v.Paid, v.Small, v.Medium = 258, true, -2, 300
	v.Quantity, v.Price = thrift.Some[int32](-25200), thrift.Some(1.0)
	v.Key = thrift.UUID{0xaa, 15: 0xbb}
	v.Payload = []byte{9}
	v.Codes = []int64{-1}
	v.Tags = []string{"ab"}
	v.Attrs = map[string]string{"k": "v"}
	v.States = map[int32][]Status{2: {1}}
	golden := []string{`
		0a 0001 0000000000000102             // i64
		02 0002 01                           // bool
		03 0003 fe                           // i8
		06 0004 012c                         // i16
		08 0005 ffff9d90                     // i32
		04 0006 3ff0000000000000             // double
		10 0007 aa0000000000000000000000000000bb // uuid
		0b 0009 00000001 09                  // binary
		0f 000b 0a 00000001 ffffffffffffffff // list<i64>
		0e 000c 0b 00000001 00000002 6162    // set<string>
		0d 000d 0b 0b 00000001 00000001 6b 00000001 76 // map<string,string>
		0f 000f 0c 00000000                  // list<struct>
		0d 0028 08 0f 00000001 00000002 08 00000001 00000001 // map<i32,list<i32>>
		00`, `
		16 8404                              // i64 258: zigzag 516
		11                                   // bool true
		13 fe                                // i8
		14 d804                              // i16 300: zigzag 600
		15 df8903                            // i32 -25200: zigzag 50399
		17 000000000000f03f                  // double, little-endian
		1d aa0000000000000000000000000000bb  // uuid
		28 01 09                             // binary, delta 2
		29 16 01                             // list<i64>
		1a 18 02 6162                        // set<string>
		1b 01 88 01 6b 01 76                 // map<string,string>
		29 0c                                // list<struct>
		0b 50 01 59 04 15 02                 // map<i32,list<i32>>, long form of the ID 40
		00`}
	for i, c := range codecs {
		want := unhex(t, golden[i])
		if got := c.append(v); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%x, want\n%x", c.name, got, want)
		}
		got := new(Order)
		if n, err := c.read(new(thrift.Reader), want, got); err != nil || n != len(want) || !reflect.DeepEqual(got, v) {
			t.Errorf("%s: read %d bytes of %d, %v: %+v", c.name, n, len(want), err, got)
		}
	}
}

func TestWhatIsWrittenIsRead(t *testing.T) {
	for _, c := range codecs {
		for _, m := range []thrift.Memory{thrift.MemoryShared, thrift.MemorySeparate, thrift.MemoryFrame} {
			for _, v := range []*Order{empty(), full()} {
				b := c.append(v)
				got := new(Order)
				n, err := c.read(&thrift.Reader{Memory: m}, b, got)
				if err != nil || n != len(b) || !reflect.DeepEqual(got, v) {
					t.Fatalf("%s, memory %d: %d bytes of %d, %v:\n%+v, want\n%+v", c.name, m, n, len(b), err, got, v)
				}
			}
		}
	}
}

func TestSizeIsExactAndWriteStaysWithin(t *testing.T) {
	for _, v := range []*Order{empty(), full()} {
		b := bytes.Repeat([]byte{0xee}, v.SizeThrift()+8)
		n := thrift.Write(b[:v.SizeThrift()], v)
		if want := thrift.Append(nil, v); n != len(want) || !bytes.Equal(b[:n], want) || n != v.SizeThrift() {
			t.Errorf("%d bytes written, size %d:\n%x, want\n%x", n, v.SizeThrift(), b[:n], want)
		}
		if !bytes.Equal(b[n:], bytes.Repeat([]byte{0xee}, 8)) {
			t.Error("Write wrote after the end")
		}
	}
}

func TestUnknownFieldsAreKept(t *testing.T) {
	// Fields of all types that Order does not declare, including a nested list without a type.
	fields := `
		02 0064 01  02 0065 00  03 0066 7f  04 0067 3ff0000000000001  06 0068 8000  08 0069 80000000
		0a 006a 8000000000000000  0b 006b 00000002 6162
		0c 006c 08 0001 00000005 02 0002 01 00
		0d 006d 02 0c 00000001 01 00
		0e 006e 02 00000002 01 00
		0f 006f 0f 00000002 00 00000000 04 00000001 4000000000000000
		10 ff80 000102030405060708090a0b0c0d0e0f
		0d 0001 00 00 00000000`
	b := unhex(t, "0a 0001 0000000000000001"+fields+"00")
	got := new(Order)
	if err := thrift.Unmarshal(b, got); err != nil {
		t.Fatal(err)
	}
	if want := unhex(t, fields); !bytes.Equal(got.unknown, want) {
		t.Errorf("kept\n%x, want\n%x", got.unknown, want)
	}
	if b = got.AppendThrift(nil); len(b) != got.SizeThrift() {
		t.Errorf("%d bytes, size %d", len(b), got.SizeThrift())
	}
	again := new(Order)
	if err := thrift.Unmarshal(b, again); err != nil || !bytes.Equal(again.unknown, got.unknown) {
		t.Errorf("%v: kept\n%x, want\n%x", err, again.unknown, got.unknown)
	}
	compact := new(Order)
	if err := thrift.UnmarshalCompact(got.AppendCompact(nil), compact); err != nil || !bytes.Equal(compact.unknown, got.unknown) {
		t.Errorf("Compact: %v: kept\n%x, want\n%x", err, compact.unknown, got.unknown)
	}
	alias := new(Order)
	r := thrift.Reader{Memory: thrift.MemoryFrame}
	if _, err := r.Read(b, 0, alias); err != nil || !bytes.Equal(alias.unknown, got.unknown) {
		t.Errorf("MemoryFrame: %v: kept\n%x, want\n%x", err, alias.unknown, got.unknown)
	}
}

func TestEmptyContainersMayHaveAnyType(t *testing.T) {
	b := unhex(t, "0a0001 0000000000000001  0f000b 00 00000000  0d000d 00 00 00000000  0f000f 63 00000000  00")
	got := new(Order)
	if err := thrift.Unmarshal(b, got); err != nil || got.Codes == nil || len(got.Attrs) != 0 || got.Lines == nil {
		t.Errorf("%v: %+v", err, got)
	}
}

// In lists of bool, the type of the elements is 1 or 2; true is 1, and false is 0 or 2.
func TestCompactBoolElements(t *testing.T) {
	for _, s := range []string{"31010201", "32010001"} {
		var r thrift.Reader
		var got []bool
		b := unhex(t, s)
		r.Begin(len(b))
		if n := r.CompactBools(b, 0, &got); n != len(b) || !reflect.DeepEqual(got, []bool{true, false, true}) {
			t.Errorf("%s: %d, %v", s, n, got)
		}
	}
	if got := thrift.AppendCompactBools(nil, []bool{true, false, true}); !bytes.Equal(got, unhex(t, "31010201")) {
		t.Errorf("written as %x", got)
	}
}

// In a long list, the number of elements follows the byte that contains the type.
func TestCompactLongList(t *testing.T) {
	b := thrift.AppendCompactInts(nil, thrift.CompactTypeI16, make([]int16, 200))
	if want := unhex(t, "f4 c801"); !bytes.Equal(b[:3], want) || len(b) != 203 {
		t.Errorf("%x, %d bytes", b[:3], len(b))
	}
	var r thrift.Reader
	r.Begin(len(b))
	var got []int16
	if n := thrift.CompactInts(&r, b, 0, thrift.CompactTypeI16, &got); n != len(b) || len(got) != 200 {
		t.Errorf("%d, %d elements", n, len(got))
	}
}

func TestDistinct(t *testing.T) {
	many := make([]int, 1000)
	for i := range many {
		many[i] = i
	}
	twice := append([]int{999}, many...)
	for _, c := range []struct {
		set  []int
		want bool
	}{{nil, true}, {[]int{1}, true}, {[]int{1, 2, 3}, true}, {[]int{1, 2, 1}, false}, {many, true}, {twice, false}} {
		if got := thrift.Distinct(c.set); got != c.want {
			t.Errorf("%d elements: %v, want %v", len(c.set), got, c.want)
		}
		equal := func(x, y *int) bool { return *x == *y }
		if got := thrift.DistinctFunc(c.set, equal); got != c.want {
			t.Errorf("%d elements: DistinctFunc %v, want %v", len(c.set), got, c.want)
		}
	}
}

func TestSortedKeysGiveTheSameBytes(t *testing.T) {
	want := full().AppendThrift(nil)
	for range 20 {
		if got := full().AppendThrift(nil); !bytes.Equal(got, want) {
			t.Fatal("equal values have different bytes")
		}
	}
}

func TestOpt(t *testing.T) {
	var o thrift.Opt[int]
	if o.Set || o.Or(7) != 7 || thrift.Some(3).Or(7) != 3 {
		t.Error("Or must return the default if and only if the Opt is not set")
	}
}
