package resp

import (
	"math"
	"strconv"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// interesting returns numbers around every power of ten and of two.
func interesting() (all []uint64) {
	for i := range 64 {
		for d := uint64(0); d < 3; d++ {
			all = append(all, uint64(1)<<i-1+d)
		}
	}
	for p, i := uint64(1), 0; i < 20; p, i = p*10, i+1 {
		all = append(all, p-1, p, p+1)
	}
	return append(all, math.MaxUint64, math.MaxInt64)
}

func TestIntegersAreWrittenLikeStrconv(t *testing.T) {
	r := testkit.Rand(t)
	numbers := interesting()
	for range 10_000 {
		numbers = append(numbers, r.Uint64()>>r.IntN(64))
	}
	for v := range uint64(10_000) {
		numbers = append(numbers, v)
	}
	for _, u := range numbers {
		want := strconv.FormatUint(u, 10)
		if got := string(appendUint(nil, u)); got != want || digits(u) != len(want) {
			t.Fatalf("appendUint(%s) = %s, digits %d", want, got, digits(u))
		}
		bulk := "$" + strconv.Itoa(len(want)) + "\r\n" + want + "\r\n"
		if got := string(AppendBulkUint([]byte("x"), u)); got != "x"+bulk {
			t.Fatalf("AppendBulkUint(%s) = %q", want, got)
		}
		for _, i := range []int64{int64(u), -int64(u)} {
			want := strconv.FormatInt(i, 10)
			if got := string(AppendInt(nil, i)); got != ":"+want+"\r\n" {
				t.Fatalf("AppendInt(%s) = %q", want, got)
			}
			if got := string(AppendBulkInt(nil, i)); got != "$"+strconv.Itoa(len(want))+"\r\n"+want+"\r\n" {
				t.Fatalf("AppendBulkInt(%s) = %q", want, got)
			}
			if got, err := ParseInt([]byte(want)); got != i || err != nil {
				t.Fatalf("ParseInt(%s) = %d, %v", want, got, err)
			}
		}
	}
}

func TestSizeBulk(t *testing.T) {
	for _, n := range []int{0, 1, 9, 10, 99, 100, 999, 1000, 99_999, 100_000, 1 << 20} {
		p := make([]byte, n)
		if got := len(AppendBulk(nil, p)); got != SizeBulk(n) {
			t.Errorf("SizeBulk(%d) = %d, AppendBulk makes %d", n, SizeBulk(n), got)
		}
		if got := len(AppendBulkString(nil, string(p))); got != SizeBulk(n) {
			t.Errorf("SizeBulk(%d) = %d, AppendBulkString makes %d", n, SizeBulk(n), got)
		}
	}
}

// checkNumber compares both parsers with strconv.
func checkNumber(t *testing.T, text string) {
	t.Helper()
	i, err := ParseInt([]byte(text))
	if want, wantErr := strconv.ParseInt(text, 10, 64); (err != nil) != (wantErr != nil) || err == nil && i != want {
		t.Errorf("ParseInt(%q) = %d, %v; strconv has %d, %v", text, i, err, want, wantErr)
	}
	f, err := ParseFloat([]byte(text))
	if err != nil {
		return
	}
	want, wantErr := strconv.ParseFloat(text, 64)
	if text[len(text)-1]|0x20 == 'n' {
		want, wantErr = math.NaN(), nil
	}
	if wantErr != nil && !math.IsInf(want, 0) || math.Float64bits(f) != math.Float64bits(want) {
		t.Errorf("ParseFloat(%q) = %v; strconv has %v, %v", text, f, want, wantErr)
	}
}

func TestNumbersAreReadLikeStrconv(t *testing.T) {
	for _, text := range []string{
		"", "-", "+", "0", "-0", "+0", "00", "-00012", "123456789012345678", "1234567890123456789", "9223372036854775807",
		"9223372036854775808", "-9223372036854775808", "-9223372036854775809", "18446744073709551615", "18446744073709551616",
		"92233720368547758070", "000000000000000000000000009", "1_000", "0x10", "1e3", "1.5", "1 ", " 1", "1\x00", "--1", "+-1", "1-",
		"inf", "+inf", "-inf", "Infinity", "-INF", "nan", "NaN", "-nan", "infin", "1e309", "-1e309", "1e-400", "0.1", "3.0000000000000004",
		"1.7976931348623157e308", "5e-324", "1e", "1e+", "1.", ".1", ".", "e1", "1.e1", "1ee1", "1.1.1",
	} {
		checkNumber(t, text)
	}
	for _, text := range []string{"0", "1.5", "-2", "+3.25e-2", "1E5", "inf", "-inf", "nan", "INF", "+Infinity", "-nan"} {
		if _, err := ParseFloat([]byte(text)); err != nil {
			t.Errorf("ParseFloat(%q): %v", text, err)
		}
	}
	for _, text := range []string{"", "-", ".5", "5.", "1e", "1e+", "0x1p4", "1_0", "infi", "na", "i", "n", "1 ", "inf "} {
		if f, err := ParseFloat([]byte(text)); err == nil {
			t.Errorf("ParseFloat(%q) = %v, want an error", text, f)
		}
	}
}

func TestFloatsReadBack(t *testing.T) {
	r := testkit.Rand(t)
	for range 20_000 {
		f := math.Float64frombits(r.Uint64())
		frame := AppendDouble(nil, f)
		v, _, err := Parse(frame, Limits{})
		if err != nil || v.Float != f && !(math.IsNaN(f) && math.IsNaN(v.Float)) {
			t.Fatalf("%v is written %q and read %v, %v", f, frame, v.Float, err)
		}
		v, _, err = Parse(AppendBulkFloat(nil, f), Limits{})
		if got, perr := ParseFloat(v.Str); err != nil || perr != nil || got != f && !(math.IsNaN(f) && math.IsNaN(got)) {
			t.Fatalf("%v is written %q and read %v, %v, %v", f, v.Str, got, err, perr)
		}
	}
}
