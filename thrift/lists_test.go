package thrift_test

import (
	"bytes"
	"encoding/binary"
	"math"
	"math/rand/v2"
	"reflect"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
)

// numbers holds the functions that write and read a list of numbers, and the encoding of an
// element.
type numbers[E any] struct {
	elem byte
	put  func(b []byte, n int, v []E) int
	few  func(b []byte, n int, v []E) bool // or nil
	read func(r *thrift.Reader, b []byte, off int, to *[]E) int
	one  func(b []byte, v E) []byte
	make func(rnd *rand.Rand) E
}

func TestListsOfNumbersEqualThePlainLoop(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	for name, l := range map[string]interface {
		check(t *testing.T, n int, rnd *rand.Rand)
	}{
		"bool": numbers[bool]{thrift.TypeBool, thrift.PutBools, nil, (*thrift.Reader).Bools, thrift.AppendBool,
			func(rnd *rand.Rand) bool { return rnd.IntN(2) == 1 }},
		"i8": numbers[int8]{thrift.TypeI8, thrift.PutI8s, nil, (*thrift.Reader).I8s, thrift.AppendI8,
			func(rnd *rand.Rand) int8 { return int8(rnd.Uint32()) }},
		"i16": numbers[int16]{thrift.TypeI16, thrift.PutI16s, thrift.PutFewI16s, (*thrift.Reader).I16s, thrift.AppendI16,
			func(rnd *rand.Rand) int16 { return int16(rnd.Uint32()) }},
		"enum": numbers[Status]{thrift.TypeI32, thrift.PutI32s[Status], thrift.PutFewI32s[Status], thrift.ReadI32s[Status],
			func(b []byte, v Status) []byte { return thrift.AppendI32(b, int32(v)) },
			func(rnd *rand.Rand) Status { return Status(rnd.Uint32()) }},
		"i64": numbers[int64]{thrift.TypeI64, thrift.PutI64s, thrift.PutFewI64s, (*thrift.Reader).I64s, thrift.AppendI64,
			func(rnd *rand.Rand) int64 { return int64(rnd.Uint64()) }},
		"double": numbers[float64]{thrift.TypeDouble, thrift.PutDoubles, thrift.PutFewDoubles, (*thrift.Reader).Doubles, thrift.AppendDouble,
			func(rnd *rand.Rand) float64 { return rnd.NormFloat64() * math.MaxFloat64 }},
		"uuid": numbers[thrift.UUID]{thrift.TypeUUID, thrift.PutUUIDs, nil, (*thrift.Reader).UUIDs, thrift.AppendUUID,
			func(rnd *rand.Rand) (v thrift.UUID) {
				binary.NativeEndian.PutUint64(v[:], rnd.Uint64())
				binary.NativeEndian.PutUint64(v[8:], rnd.Uint64())
				return v
			}},
	} {
		t.Run(name, func(t *testing.T) {
			for n := range 301 {
				l.check(t, n, rnd)
			}
			l.check(t, 1<<16, rnd)
		})
	}
}

// check writes and reads lists of n elements at different offsets.
func (l numbers[E]) check(t *testing.T, n int, rnd *rand.Rand) {
	t.Helper()
	from, list := rnd.IntN(9), make([]E, n)
	want := bytes.Repeat([]byte{0xee}, from)
	for i := range list {
		list[i] = l.make(rnd)
		want = l.one(want, list[i])
	}
	canary := bytes.Repeat([]byte{0xee}, 16)
	want = append(want, canary...)
	got := bytes.Repeat([]byte{0xee}, len(want))
	if end := l.put(got[:len(want)-16], from, list); end != len(want)-16 || !bytes.Equal(got, want) {
		t.Fatalf("%d elements from %d: the end is %d of %d\n%x, want\n%x", n, from, end, len(want)-16, got, want)
	}
	if l.few != nil && n <= 8 {
		got = bytes.Repeat([]byte{0xee}, len(want))
		if done := l.few(got, from, list); done != (n < 8) || done && !bytes.Equal(got, want) {
			t.Fatalf("%d elements from %d: few: %v\n%x, want\n%x", n, from, done, got, want)
		}
	}
	in := thrift.AppendList(want[:from:from], l.elem, n)
	in = append(in, want[from:len(want)-16]...)
	for _, old := range [][]E{nil, make([]E, n, n+5)} {
		var r thrift.Reader
		r.Begin(len(in) - from)
		to := old
		if end := l.read(&r, in, from, &to); end != len(in) || !reflect.DeepEqual(to, list) {
			t.Fatalf("%d elements from %d: read to %d of %d", n, from, end, len(in))
		}
		if n > 0 && old != nil && &to[0] != &old[0] {
			t.Fatalf("%d elements: the list that had room was not reused", n)
		}
		if n > 0 && l.read(&r, in[:len(in)-1], from, &to) != thrift.CodeLength {
			t.Fatalf("%d elements: one byte too few is accepted", n)
		}
	}
}

// A bool that is neither 0 nor 1 is true, in fields and in lists of any length.
func TestEveryBoolButZeroIsTrue(t *testing.T) {
	for _, c := range []byte{0, 1, 2, 0x7f, 0x80, 0xff} {
		var one bool
		if n := thrift.ReadBool([]byte{c}, 0, &one); n != 1 || one != (c != 0) {
			t.Errorf("%d: %v", c, one)
		}
		for n := range 100 {
			in := append(thrift.AppendList(nil, thrift.TypeBool, n), bytes.Repeat([]byte{c}, n)...)
			var r thrift.Reader
			r.Begin(len(in))
			var got []bool
			if end := r.Bools(in, 0, &got); end != len(in) {
				t.Fatalf("%d times %d: %d of %d", n, c, end, len(in))
			}
			// The result is not compared as bools, because the compiler may assume that these are 0
			// or 1.
			out := make([]byte, n)
			thrift.PutBools(out, 0, got)
			if !bytes.Equal(out, bytes.Repeat([]byte{thrift.Bit(c != 0)}, n)) {
				t.Fatalf("%d times %d: written as %x", n, c, out)
			}
		}
	}
}
