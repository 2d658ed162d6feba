package iproto

import (
	"bytes"
	"errors"
	"math"
	"testing"
)

// TestDefaultLimits: a decoder has limits by default and after Reset, and they do not apply to
// skipped values.
func TestDefaultLimits(t *testing.T) {
	data := append(AppendArray(nil, DefaultElements+1), bytes.Repeat([]byte{codeNil}, DefaultElements+1)...)
	d := NewDecoder(data)
	for _, l := range []Limits{{}, {Elements: 5}, {Bytes: 5}} {
		d.Limit(l)
		if v := d.Any(); v != nil || !errors.Is(d.Err(), ErrLimit) {
			t.Errorf("%+v: %T, %v", l, v, d.Err())
		}
		d.Reset(data)
	}
	if d.Skip(); d.Err() != nil || d.Len() != 0 {
		t.Errorf("Skip: %v, %d bytes left", d.Err(), d.Len())
	}
	d.Reset(data)
	if raw := d.Raw(); len(raw) != len(data) || d.Err() != nil {
		t.Errorf("Raw: %d bytes, %v", len(raw), d.Err())
	}
	d.Reset(data)
	if d.Limit(Limits{Elements: 2 * DefaultElements}); d.Array() != DefaultElements+1 || d.Err() != nil {
		t.Errorf("a higher limit: %v", d.Err())
	}
}

// TestClaim: an amount that just fits can be claimed, and a larger one makes the decoder fail.
func TestClaim(t *testing.T) {
	var d Decoder
	d.Reset(AppendString(nil, "four"))
	d.Limit(Limits{Bytes: 104})
	if d.String() != "four" || !d.Claim(10, 10) || !d.Claim(0, math.MaxInt) || !d.Claim(math.MaxInt, 0) || d.Err() != nil {
		t.Errorf("104 bytes: %v", d.Err())
	}
	if d.Claim(1, 1) || !errors.Is(d.Err(), ErrLimit) || d.Err().Error() == "" {
		t.Errorf("one more byte: %v", d.Err())
	}
	d.Reset(nil)
	if d.Claim(math.MaxInt, math.MaxInt) || d.Err() == nil {
		t.Error("a product that is too large was claimed")
	}
}

// TestLimitsInErrors: the values in an extension are counted together with those around it.
func TestLimitsInErrors(t *testing.T) {
	one := AppendBoxError(nil, &BoxError{Fields: map[string]any{"f": []any{nil, nil, nil, nil}}})
	several := AppendArray(nil, 10)
	for range 10 {
		several = append(several, one...)
	}
	for _, c := range []struct {
		elements int
		fits     bool
	}{{1000, true}, {60, false}} {
		d := NewDecoder(several)
		d.Limit(Limits{Elements: c.elements})
		if v := d.Any(); (v != nil) != c.fits || (d.Err() == nil) != c.fits {
			t.Errorf("%d elements: %v, fits %t", c.elements, d.Err(), c.fits)
		}
	}
}
