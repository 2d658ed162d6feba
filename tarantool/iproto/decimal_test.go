package iproto

import (
	"math"
	"math/big"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// rational returns d as a fraction.
func rational(d Decimal) *big.Rat {
	negative, hi, lo, scale := d.Parts()
	n := new(big.Int).Add(new(big.Int).Lsh(new(big.Int).SetUint64(hi), 64), new(big.Int).SetUint64(lo))
	if negative {
		n.Neg(n)
	}
	power := new(big.Int).Exp(big.NewInt(10), big.NewInt(int64(max(scale, -scale))), nil)
	if scale < 0 {
		return new(big.Rat).SetInt(n.Mul(n, power))
	}
	return new(big.Rat).SetFrac(n, power)
}

// randomDecimal returns a decimal with any number of digits, which are often the same.
func randomDecimal(r *rand.Rand) Decimal {
	digits := make([]byte, 1+r.IntN(MaxDigits))
	for i := range digits {
		digits[i] = "0123456789"[min(r.IntN(10), r.IntN(10))]
	}
	d := decimal(string(digits))
	d.scale = int32(r.IntN(90) - 45)
	d.negative = d.Sign() != 0 && r.IntN(2) == 0
	return d
}

func TestDecimalAgainstBig(t *testing.T) {
	r := testkit.Rand(t)
	decimals := []Decimal{{}, DecimalFromInt(1), DecimalFromInt(math.MinInt64), decimal("1e37"), decimal("-1e-38"), decimal(strings.Repeat("9", 38))}
	for range 300 {
		decimals = append(decimals, randomDecimal(r))
	}
	for i, d := range decimals {
		want, ok := new(big.Rat).SetString(d.String())
		if !ok || want.Cmp(rational(d)) != 0 {
			t.Fatalf("%#v: String() = %s, want %s", d, d, rational(d).FloatString(50))
		}
		if f, _ := want.Float64(); f != d.Float64() {
			t.Fatalf("%v: Float64() = %v, want %v", d, d.Float64(), f)
		}
		if d.Sign() != want.Sign() {
			t.Fatalf("%v: sign %d", d, d.Sign())
		}
		// The same number with trailing zeros.
		others := append([]Decimal{d}, decimals[:i]...)
		if wider := d; wider.shift(0) {
			wider.scale++
			others = append(others, wider)
		}
		for _, o := range others {
			if got, want := d.Compare(o), rational(d).Cmp(rational(o)); got != want || o.Compare(d) != -want {
				t.Fatalf("%v compared with %v: %d, want %d", d, o, got, want)
			}
		}
	}
	if d := decimal("1e9999"); !math.IsInf(d.Float64(), 1) {
		t.Errorf("1e9999 as a float: %v", d.Float64())
	}
}

func TestNewDecimal(t *testing.T) {
	if d, err := NewDecimal(true, 0, 0, 3); err != nil || d != (Decimal{scale: 3}) {
		t.Errorf("negative zero: %#v, %v", d, err)
	}
	if d, err := NewDecimal(true, greatestHi, greatestLo, -MaxScale); err != nil || d.String() != "-"+strings.Repeat("9", 38)+"e1048576" {
		t.Errorf("smallest: %v, %v", d, err)
	}
	for _, c := range []struct {
		hi, lo uint64
		scale  int
	}{{greatestHi, greatestLo + 1, 0}, {greatestHi + 1, 0, 0}, {math.MaxUint64, 0, 0}, {0, 1, MaxScale + 1}, {0, 1, -MaxScale - 1}} {
		if d, err := NewDecimal(false, c.hi, c.lo, c.scale); err == nil || d != (Decimal{}) {
			t.Errorf("NewDecimal(%v): %v, %v, want an error", c, d, err)
		}
	}
}

// FuzzDecimal: text and wire form have the same value as with arithmetic of package big.
func FuzzDecimal(f *testing.F) {
	for _, s := range []string{"0", "-1.50", "1e37", ".5e-3", "99999999999999999999999999999999999999", "1E+2", "x"} {
		f.Add(s, []byte{0, 0x1c})
	}
	f.Fuzz(func(t *testing.T, s string, packed []byte) {
		if d, err := ParseDecimal(s); err == nil {
			if back := must(ParseDecimal(d.String())); back != d {
				t.Fatalf("%q: %#v, again %#v", s, d, back)
			}
			if d.scale > -200 && d.scale < 200 {
				if want, ok := new(big.Rat).SetString(s); !ok || want.Cmp(rational(d)) != 0 {
					t.Fatalf("%q: %v", s, d)
				}
			}
			b := AppendDecimal(nil, d)
			dec := NewDecoder(b)
			if back := dec.Decimal(); dec.Err() != nil || back != d {
				t.Fatalf("%q: written as %x, read as %v, %v", s, b, back, dec.Err())
			}
		}
		dec := NewDecoder(AppendExt(nil, TypeDecimal, packed))
		d := dec.Decimal()
		if dec.Err() != nil {
			return
		}
		again := AppendDecimal(nil, d)
		dec.Reset(again)
		if back := dec.Decimal(); dec.Err() != nil || back != d || len(again) > len(packed)+7 || d.String() == "" {
			t.Fatalf("%x: %v, again %x", packed, d, again)
		}
	})
}
