package iproto

import (
	"bytes"
	"errors"
	"maps"
	"math/rand/v2"
	"slices"
	"testing"
)

// addValues adds all vectors and hostile inputs.
func addValues(f *testing.F, add func(b []byte)) {
	for _, c := range vectors {
		if b := AppendAny(nil, c.v); len(b) < 1000 {
			add(b)
		}
	}
	for _, c := range extVectors {
		add(AppendAny(nil, c.v))
	}
	for _, name := range slices.Sorted(maps.Keys(hostile)) {
		if b := hostile[name]; len(b) < 1000 {
			add(b)
		}
	}
	r := rand.New(rand.NewPCG(1, 2))
	for range 50 {
		if b := AppendAny(nil, randomAny(r, 2)); len(b) < 1000 {
			add(b)
		}
	}
}

// FuzzDecoder: any sequence of reads on any bytes is safe and makes progress. Reading the same
// bytes twice gives the same result. A value that Any accepts is accepted by Raw, too, and when
// encoded again, it decodes to the same value or exceeds a limit.
func FuzzDecoder(f *testing.F) {
	addValues(f, func(b []byte) { f.Add(b, []byte{0}) })
	names := slices.Sorted(maps.Keys(reads))
	f.Fuzz(func(t *testing.T, data, calls []byte) {
		d := NewDecoder(data)
		v := d.Any()
		if d.Err() == nil {
			checkAny(t, data[:d.Offset()], v)
		} else if v != nil {
			t.Fatalf("%x: %v and %v", data, v, d.Err())
		}
		checkLimits(t, data, v, len(calls))
		d.Reset(data)
		for i := range calls {
			read := names[int(calls[i])%len(names)]
			before := d
			again := d
			reads[read](&d)
			if reads[read](&again); again.Offset() != d.Offset() || (again.Err() == nil) != (d.Err() == nil) {
				t.Fatalf("%x: %s once to %d, %v, again to %d, %v", data, read, d.Offset(), d.Err(), again.Offset(), again.Err())
			}
			if d.Err() != nil {
				if e := new(DecodeError); !errors.As(d.Err(), &e) || e.Offset < before.Offset() || e.Offset > len(data) || d.Len() != 0 || d.Err().Error() == "" {
					t.Fatalf("%x: %s: error %v of type %T", data, read, d.Err(), d.Err())
				}
				break
			}
			if d.Offset() <= before.Offset() || d.Offset() > len(data) || d.Offset()+d.Len() != len(data) {
				t.Fatalf("%x: %s from %d to %d", data, read, before.Offset(), d.Offset())
			}
			if skipped := before; read != "array" && read != "map" {
				if skipped.Skip(); skipped.Offset() != d.Offset() {
					t.Fatalf("%x: %s goes to %d, Skip to %d", data, read, d.Offset(), skipped.Offset())
				}
			}
		}
	})
}

// checkLimits reads a value with limits, and compares the result with v, which was read without
// limits.
func checkLimits(t *testing.T, data []byte, v any, elements int) {
	limits := Limits{Elements: elements + 1, Bytes: 64 * (elements + 1)}
	d := NewDecoder(data)
	d.Limit(limits)
	got := d.Any()
	n, bytes := weigh(got)
	switch {
	case errors.Is(d.Err(), ErrLimit):
		if got != nil {
			t.Fatalf("%x: %v and %v", data, got, d.Err())
		}
	case (d.Err() == nil) != (v != nil || len(data) > 0 && data[0] == codeNil):
		t.Fatalf("%x: %v with limits, %v without", data, d.Err(), v)
	case n > limits.Elements || bytes > limits.Bytes:
		t.Fatalf("%x: %d elements, %d bytes, limits %+v", data, n, bytes, limits)
	}
}

// weigh counts the elements of a value and the bytes of its strings, arrays and maps.
func weigh(v any) (elements, bytes int) {
	add := func(v any) {
		n, b := weigh(v)
		elements, bytes = elements+n, bytes+b
	}
	switch v := v.(type) {
	case string:
		bytes = len(v)
	case []byte:
		bytes = len(v)
	case []any:
		elements, bytes = len(v), 16*len(v)
		for _, elem := range v {
			add(elem)
		}
	case map[any]any:
		elements, bytes = 2*len(v), 32*len(v)
		for key, elem := range v {
			add(key)
			add(elem)
		}
	}
	return elements, bytes
}

func checkAny(t *testing.T, raw []byte, v any) {
	d := NewDecoder(raw)
	if got := d.Raw(); !bytes.Equal(got, raw) || d.Err() != nil {
		t.Fatalf("%x: Any reads everything, but Raw %x, %v", raw, got, d.Err())
	}
	// Maps have no order and may have had equal keys: the second time only the order may change.
	once := AppendAny(nil, v)
	d.Reset(once)
	again := AppendAny(nil, d.Any())
	if d.Err() != nil || d.Len() != 0 || len(again) != len(once) {
		t.Fatalf("%x: encoded again %x, and again %x, %v", raw, once, again, d.Err())
	}
}
