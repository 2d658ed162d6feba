package iproto

import (
	"bytes"
	"errors"
	"math"
	"math/rand/v2"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// extVectors are extensions: decimals and UUIDs as written by Tarantool 2.6.0, and others composed
// from the tables in the documentation.
var extVectors = []struct {
	encoded string
	v       any
	text    string
}{
	{"d6 01 01 12345c", decimal("1234.5"), "1234.5"},
	{"d6 01 02 01234d", decimal("-12.34"), "-12.34"},
	{"c7 03 01 00 100c", decimal("100"), "100"},
	{"d5 01 01 5c", decimal("0.5"), "0.5"},
	{"d5 01 00 0c", Decimal{}, "0"},
	{"d5 01 26 0c", decimal("0e-38"), "0." + strings.Repeat("0", 38)},
	{"c7 03 01 d0db 1c", decimal("1e37"), "1e37"},
	{"d6 01 f6 12345c", decimal("12345e10"), "12345e10"},
	{"d5 01 fb 0c", decimal("0e5"), "0e5"},
	{"d5 01 07 1c", decimal("1e-7"), "0.0000001"},
	{"c7 15 01 00 099999999999999999999999999999999999999c", decimal(strings.Repeat("9", 38)), strings.Repeat("9", 38)},
	{"c7 15 01 25 031415926535897932384626433832795028841d", decimal("-3.1415926535897932384626433832795028841"), "-3.1415926535897932384626433832795028841"},
	{"d8 02 7170b4af 72b6 4f07 b7a1 0e4b1b1d9ab4", uuid("7170B4AF-72b6-4f07-b7a1-0e4b1b1d9ab4"), "7170b4af-72b6-4f07-b7a1-0e4b1b1d9ab4"},
	{"d8 02 00000000000000000000000000000000", UUID{}, "00000000-0000-0000-0000-000000000000"},
	{"d7 04 0000000000000000", Datetime{}, "1970-01-01T00:00:00Z"},
	{"d7 04 ffffffffffffffff", Datetime{Seconds: -1}, "1969-12-31T23:59:59Z"},
	{"d8 04 0000000000000000 01000000 0000 0000", Datetime{Nanoseconds: 1}, "1970-01-01T00:00:00.000000001Z"},
	{"d8 04 5943fb6200000000 0065cd1d b400 b303", Datetime{1660633945, 500_000_000, 180, 947}, "2022-08-16T10:12:25.5+03:00"},
	{"d8 04 0000000000000000 00000000 4cff 0000", Datetime{Offset: -180}, "1969-12-31T21:00:00-03:00"},
	{"c7 09 06 03 0001 01ccc8 03d0b3", Interval{Years: 1, Months: 200, Days: -77}, "1 years, 200 months, -77 days"},
	{"d4 06 00", Interval{}, "0 seconds"},
	{"c7 05 06 02 0502 0801", Interval{Minutes: 2, Adjust: AdjustNone}, "2 minutes"},
	{"d6 07 05 9201c3", Tuple{5, []byte{0x92, 1, 0xc3}}, ""},
	{"c7 03 08 010203", Arrow{1, 2, 3}, ""},
}

func decimal(s string) Decimal { return must(ParseDecimal(s)) }
func uuid(s string) UUID       { return must(ParseUUID(s)) }

func must[T any](v T, err error) T {
	if err != nil {
		panic(err)
	}
	return v
}

func TestExtensionVectors(t *testing.T) {
	for _, c := range extVectors {
		want := testkit.Unhex(t, c.encoded)
		if got := AppendAny([]byte("x"), c.v)[1:]; !bytes.Equal(got, want) {
			t.Errorf("%v: encoded %x, want %x", c.v, got, want)
		}
		d := NewDecoder(want)
		if v := d.Any(); d.Err() != nil || d.Len() != 0 || !reflect.DeepEqual(v, c.v) {
			t.Errorf("%x: %v, %v, want %v", want, v, d.Err(), c.v)
		}
		if s, ok := c.v.(interface{ String() string }); ok && s.String() != c.text {
			t.Errorf("%x: String() = %q, want %q", want, s, c.text)
		}
		for n := range want {
			d.Reset(want[:n])
			if v := d.Any(); v != nil || !errors.Is(d.Err(), ErrTruncated) {
				t.Errorf("%x cut off after %d: %v, %v", want, n, v, d.Err())
			}
		}
	}
}

func TestBrokenExtensions(t *testing.T) {
	for _, c := range []struct{ encoded, want string }{
		{"d4 01 00", "a scale and digits"},
		{"c7 00 01", "a scale and digits"},
		{"d5 01 c0 0c", "a scale and digits"},
		{"c7 03 01 cb 000c", "a scale and digits"},
		{"d5 01 00 01", "decimal without a sign"},
		{"d5 01 00 ac", "decimal digits"},
		{"c7 03 01 00 1a1c", "decimal digits"},
		{"c7 03 01 00 a11c", "decimal digits"},
		{"c7 15 01 00 199999999999999999999999999999999999999c", "more than 38 digits"},
		{"c7 17 01 00 0000 199999999999999999999999999999999999999c", "more than 38 digits"},
		{"c7 06 01 ce00100001 1c", "scale beyond"},
		{"c7 0a 01 cfffffffffffffffff 1c", "a scale and digits"},
		{"c7 0a 01 d38000000000000000 1c", "scale beyond"},
		{"c7 0f 02 000000000000000000000000000000", "UUID of 15 bytes at offset 0, expected 16"},
		{"c7 11 02 0000000000000000000000000000000000", "UUID of 17 bytes"},
		{"d6 04 00000000", "datetime of 4 bytes at offset 0, expected 8 or 16"},
		{"d8 04 0000000000000000 00ca9a3b 0000 0000", "datetime with 1000000000 nanoseconds"},
		{"d8 04 0000000000000000 ffffffff 0000 0000", "datetime with 4294967295 nanoseconds"},
		{"c7 00 06", "numbers of fields"},
		{"d4 06 01", "numbers of fields"},
		{"d5 06 00 00", "1 bytes at offset 1, expected the end"},
		{"c7 03 06 01 09 01", "field 9"},
		{"c7 03 06 01 08 03", "value 3"},
		{"c7 03 06 01 08 ff", "value -1"},
		{"c7 07 06 01 00 ce80000000", "value 2147483648"},
		{"c7 07 06 01 07 ce80000000", "value 2147483648"},
		{"c7 0b 06 01 05 cf8000000000000000", "an integer of 64 bits"},
		{"c7 00 07", "the number of a format"},
		{"d4 07 01", "expected an array"},
		{"d5 07 01 80", "map of 0 at offset 1, expected an array"},
		{"d6 07 01 90 c0 c0", "expected the end of the tuple"},
		{"c7 00 03", "a stack of errors"},
		{"d5 03 80 c0", "expected the end of the error"},
		{"d6 03 81 00 91 01", "integer 1 at offset 3, expected a map"},
		{"c7 05 03 81 00 dcffff", "array that is cut off"},
		{"c7 06 03 81 00 91 81 00 c0", "expected a string"},
	} {
		in := testkit.Unhex(t, c.encoded)
		d := NewDecoder(in)
		v := d.Any()
		if v != nil || d.Err() == nil || !strings.Contains(d.Err().Error(), c.want) || !errors.As(d.Err(), new(*DecodeError)) {
			t.Errorf("%s: %v, %v, want %q", c.encoded, v, d.Err(), c.want)
		}
	}
}

// Decimals that are read but never written: other signs, leading zeros.
func TestLenientDecimals(t *testing.T) {
	for encoded, want := range map[string]string{
		"c7 03 01 00 000a":            "0",
		"d5 01 00 1e":                 "1",
		"d5 01 00 1f":                 "1",
		"d5 01 00 1b":                 "-1",
		"d5 01 00 0d":                 "0",
		"c7 08 01 01 000000000001 5d": "-1.5",
		"c7 03 01 d0fe 1c":            "1e2",
		"c7 18 01 00 " + strings.Repeat("00", 22) + "7c": "7",
	} {
		d := NewDecoder(testkit.Unhex(t, encoded))
		if v := d.Decimal(); d.Err() != nil || v.String() != want || v != decimal(want) {
			t.Errorf("%s: %v, %v, want %s", encoded, v, d.Err(), want)
		}
	}
	d := NewDecoder(testkit.Unhex(t, "07 ff cfffffffffffffffff"))
	if a, b, c := d.Decimal(), d.Decimal(), d.Decimal(); d.Err() != nil || a != decimal("7") || b != decimal("-1") || c != decimal("18446744073709551615") {
		t.Errorf("integers as decimals: %v %v %v, %v", a, b, c, d.Err())
	}
}

func TestParseDecimal(t *testing.T) {
	for in, want := range map[string]string{
		"0": "0", "-0": "0", "+1": "1", "007": "7", "1.": "1", ".5": "0.5", "-.5": "-0.5", "1.50": "1.50",
		"1E3": "1e3", "1e+3": "1e3", "1e-3": "0.001", "1.5e1": "15", "15e-1": "1.5",
		strings.Repeat("0", 100) + "1": "1",
		"1e-76":                        "0." + strings.Repeat("0", 75) + "1",
		"1e-77":                        "1e-77",
		"1e1048576":                    "1e1048576",
	} {
		v, err := ParseDecimal(in)
		if err != nil || v.String() != want {
			t.Errorf("ParseDecimal(%q) = %v, %v, want %s", in, v, err, want)
		}
	}
	for _, in := range []string{
		"", "-", "+", ".", "-.", "e1", "1e", "1e+", "1e 1", "1x", "0x10", "1_0", " 1", "1 ", "1..2", "1.2.3", "--1", "nan", "inf", "1e1.5",
		"1e1048577", "1e-1048577", "1e99999999999999999999", "1e-99999999999999999999",
		strings.Repeat("9", 39), "100000000000000000000000000000000000000", "1" + strings.Repeat("0", 60),
	} {
		if v, err := ParseDecimal(in); err == nil || !errors.As(err, new(*DecodeError)) {
			t.Errorf("ParseDecimal(%q) = %v, %v, want an error", in, v, err)
		}
	}
}

func TestParseUUID(t *testing.T) {
	for _, in := range []string{
		"", "7170b4af-72b6-4f07-b7a1-0e4b1b1d9ab", "7170b4af-72b6-4f07-b7a1-0e4b1b1d9ab44", "7170b4af72b64f07b7a10e4b1b1d9ab4----",
		"7170b4af-72b6-4f07-b7a1-0e4b1b1d9abg", "7170b4af-72b6-4f07-b7a1_0e4b1b1d9ab4", "{170b4af-72b6-4f07-b7a1-0e4b1b1d9ab}",
	} {
		if v, err := ParseUUID(in); err == nil || !errors.As(err, new(*DecodeError)) {
			t.Errorf("ParseUUID(%q) = %v, %v, want an error", in, v, err)
		}
	}
}

// randomExt returns an extension of any type.
func randomExt(r *rand.Rand) any {
	switch r.IntN(7) {
	case 0:
		d := Decimal{hi: r.Uint64N(greatestHi) >> r.IntN(64), lo: r.Uint64() >> r.IntN(64), scale: int32(r.IntN(100) - 50), negative: r.IntN(2) == 0}
		return must(NewDecimal(d.Parts()))
	case 1:
		var u UUID
		for i := range u {
			u[i] = byte(r.Uint32())
		}
		return u
	case 2:
		return Datetime{int64(r.Uint64()) >> r.IntN(64), uint32(r.IntN(1e9) * r.IntN(2)), int16(r.Uint32() * r.Uint32N(2)), int16(r.Uint32() * r.Uint32N(2))}
	case 3:
		some := func() int64 { return int64(r.Uint64()) >> r.IntN(64) * int64(r.IntN(2)) }
		return Interval{int32(some()), int32(some()), int32(some()), some(), some(), some(), some(), int32(some()), Adjust(r.IntN(3))}
	case 4:
		return Tuple{r.Uint64() >> r.IntN(64), AppendAny(AppendAny(AppendArray(nil, 2), randomAny(r, 1)), nil)}
	case 5:
		var e *BoxError
		for range 1 + r.IntN(3) {
			e = &BoxError{Type: "T", File: "f.c", Line: r.Uint64(), Message: "m", Errno: r.Uint64() >> 40, Code: r.Uint32(), Cause: e}
			if r.IntN(2) == 0 {
				e.Fields = map[string]any{"a": randomAny(r, 1), "b": int64(1)}
			}
		}
		return e
	}
	return Arrow(make([]byte, r.IntN(300)))
}

// randomAny returns a random value of the types that [Decoder.Any] returns.
func randomAny(r *rand.Rand, depth int) any {
	n := 10
	if depth <= 0 {
		n = 8
	}
	switch r.IntN(n) {
	case 0:
		return nil
	case 1:
		return r.IntN(2) == 0
	case 2:
		return int64(r.Uint64()) >> r.IntN(64)
	case 3:
		return math.MaxUint64 - r.Uint64()>>1
	case 4:
		return r.NormFloat64()
	case 5:
		return strings.Repeat("é", r.IntN(40)*r.IntN(40)*(r.IntN(100)/99*20+1))
	case 6:
		return make([]byte, r.IntN(300)*(r.IntN(100)/99*250+1))
	case 7:
		if depth < 0 {
			return int64(-1)
		}
		return randomExt(r)
	case 8:
		elems := make([]any, r.IntN(20))
		for i := range elems {
			elems[i] = randomAny(r, depth-1)
		}
		return elems
	}
	m := make(map[any]any)
	for range r.IntN(20) {
		key := randomAny(r, -1)
		if !isComparable(key) {
			key = int64(3)
		}
		m[key] = randomAny(r, depth-1)
	}
	return m
}

func TestRoundTrip(t *testing.T) {
	r := testkit.Rand(t)
	for range 10_000 {
		v := randomAny(r, 2)
		b := AppendAny(nil, v)
		d := NewDecoder(b)
		if back := d.Any(); d.Err() != nil || d.Len() != 0 || !reflect.DeepEqual(back, v) {
			t.Fatalf("%v: read back %v, %v", v, back, d.Err())
		}
		d.Reset(b)
		if raw := d.Raw(); d.Err() != nil || !bytes.Equal(raw, b) {
			t.Fatalf("%v: Raw gives %d of %d bytes, %v", v, len(raw), len(b), d.Err())
		}
		switch v := v.(type) {
		case Decimal:
			if back, err := ParseDecimal(v.String()); err != nil || back != v {
				t.Fatalf("%v: parsed %v, %v", v, back, err)
			}
		case UUID:
			if back, err := ParseUUID(strings.ToUpper(v.String())); err != nil || back != v {
				t.Fatalf("%v: parsed %v, %v", v, back, err)
			}
		}
	}
}

// Datetimes are formatted like package time formats them, as far as it can.
func TestDatetimeText(t *testing.T) {
	r := testkit.Rand(t)
	first := time.Date(0, 1, 2, 0, 0, 0, 0, time.UTC).Unix()
	last := time.Date(9999, 12, 30, 0, 0, 0, 0, time.UTC).Unix()
	for i := range 100_000 {
		d := Datetime{Seconds: first + r.Int64N(last-first), Offset: int16(r.IntN(24*60) - 12*60)}
		if i%2 == 0 {
			d.Seconds -= d.Seconds % 86400 // the start of the day
		}
		if i%3 == 0 {
			d.Nanoseconds = uint32(r.IntN(1e9))
		}
		zone := time.FixedZone("", int(d.Offset)*60)
		if want := time.Unix(d.Seconds, int64(d.Nanoseconds)).In(zone).Format(time.RFC3339Nano); d.String() != want {
			t.Fatalf("%+v: %s, want %s", d, d, want)
		}
	}
	for want, d := range map[string]Datetime{
		"+10000-01-01T00:00:00Z":        {Seconds: time.Date(10000, 1, 1, 0, 0, 0, 0, time.UTC).Unix()},
		"-0001-12-31T23:59:59Z":         {Seconds: time.Date(0, 1, 1, 0, 0, 0, 0, time.UTC).Unix() - 1},
		"+292277026596-12-04T15:30:07Z": {Seconds: math.MaxInt64},
	} {
		if d.String() != want {
			t.Errorf("%+v: %s, want %s", d, d, want)
		}
	}
	// There is no overflow at the extremes, whatever the offset.
	for _, d := range []Datetime{{Seconds: math.MaxInt64, Offset: math.MaxInt16}, {Seconds: math.MinInt64, Offset: math.MinInt16}} {
		if s := d.String(); !strings.HasPrefix(s, "+292277026596-") && !strings.HasPrefix(s, "-292277022657-") {
			t.Errorf("%+v: %s", d, s)
		}
	}
}
