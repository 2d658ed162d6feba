package thrift

import (
	"bytes"
	"slices"
	"strings"
	"testing"
)

// likeness describes a struct of a list in tests of layouts.
type likeness struct {
	name     string
	numbers  int  // the number of i32s in a list
	optional bool // the struct has one more field
	elem     byte // the element type of an empty list
	id       byte // the ID of the last field
}

func (e likeness) append(b []byte) []byte {
	b = AppendI64(append(b, TypeI64, 0, 1), 1<<40)
	if e.optional {
		b = AppendBool(append(b, TypeBool, 0, 2), true)
	}
	b = AppendString(append(b, TypeString, 0, 3), e.name)
	b = AppendList(append(b, TypeList, 0, 4), TypeI32, e.numbers)
	b = append(b, make([]byte, 4*e.numbers)...)
	b = AppendList(append(b, TypeSet, 0, 5), TypeString, 2)
	b = AppendString(AppendString(b, "first"), e.name)
	b = AppendList(append(b, TypeList, 0, 6), e.elem, 0)
	b = append(AppendMap(append(b, TypeMap, 0, 7), TypeI8, TypeStruct, 1), 5, TypeI16, 0, 1, 0, 0, TypeStop)
	return append(AppendI16(append(b, TypeI16, 0, e.id), 3), TypeStop)
}

// likenesses returns n structs, each changed by change.
func likenesses(n int, change func(i int, e *likeness)) []likeness {
	all := make([]likeness, n)
	for i := range all {
		all[i] = likeness{name: "a name", numbers: 2, elem: TypeI32, id: 9}
		change(i, &all[i])
	}
	return all
}

// repeatsOf calls repeats for the encoding of structs without its last missing bytes. It checks the
// returned offset.
func repeatsOf(t *testing.T, all []likeness, loose bool, missing int) (units, structs int) {
	t.Helper()
	b := make([]byte, 8)
	ends := []int{8}
	for _, e := range all {
		b = e.append(b)
		ends = append(ends, len(b))
	}
	b = slices.Clip(b[:len(b)-missing])
	units, structs, next := repeats(b, (*[sampled + 1]int)(ends), len(all)-sampled, loose)
	if next != ends[sampled+units*structs] {
		t.Fatalf("%d units of %d end at %d, want %d", units, structs, next, ends[sampled+units*structs])
	}
	return units, structs
}

func TestStructsWithTheSameLayoutAreCompared(t *testing.T) {
	const n = 40
	for _, c := range []struct {
		what           string
		change         func(i int, e *likeness)
		loose          bool
		units, structs int
	}{
		{"all the same", func(int, *likeness) {}, false, n - sampled, 1},
		{"all the same, any length", func(int, *likeness) {}, true, n - sampled, 1},
		{"every other one has a field", func(i int, e *likeness) { e.optional = i%2 == 0 }, false, (n - sampled) / 2, 2},
		{"every third one has a field", func(i int, e *likeness) { e.optional = i%3 == 0 }, false, 0, 1},
		{"lengths differ", func(i int, e *likeness) { e.name = strings.Repeat("n", i%7) }, false, n - sampled, 1},
		{"numbers of elements differ", func(i int, e *likeness) { e.numbers = i % 3 }, false, n - sampled, 1},
		{"lengths and fields differ", func(i int, e *likeness) { e.name, e.optional, e.numbers = strings.Repeat("n", i), i%2 == 0, 40-i }, false, (n - sampled) / 2, 2},
		{"lengths differ later", func(i int, e *likeness) { e.name = strings.Repeat("n", 3+i/10) }, false, 10 - sampled, 1},
		{"lengths differ later, any length", func(i int, e *likeness) { e.name = strings.Repeat("n", 3+i/10) }, true, n - sampled, 1},
		{"a number of elements differs later", func(i int, e *likeness) { e.numbers = 1 + i/20 }, false, 20 - sampled, 1},
		{"a number of elements differs later, any length", func(i int, e *likeness) { e.numbers = 1 + i/20 }, true, n - sampled, 1},
		{"a field is present later", func(i int, e *likeness) { e.optional = i >= 17 }, true, 17 - sampled, 1},
		{"the last field has another ID later", func(i int, e *likeness) { e.id = byte(9 + i/20) }, true, 20 - sampled, 1},
		{"the element type of an empty list differs later", func(i int, e *likeness) { e.elem = byte(TypeI32 + 2*(i/20)) }, true, 20 - sampled, 1},
		{"the element type of an empty list differs", func(i int, e *likeness) { e.elem = byte(TypeI32 + 2*(i%2)) }, true, (n - sampled) / 2, 2},
		{"long values", func(_ int, e *likeness) { e.name = strings.Repeat("n", 1<<15) }, false, 0, 1},
		{"long values, any length", func(_ int, e *likeness) { e.name = strings.Repeat("n", 1<<15) }, true, n - sampled, 1},
	} {
		all := likenesses(n, c.change)
		if units, structs := repeatsOf(t, all, c.loose, 0); units != c.units || structs != c.structs {
			t.Errorf("%s: %d units of %d, want %d of %d", c.what, units, structs, c.units, c.structs)
		}
		// The last unit is truncated.
		size := len(all[n-1].append(nil))
		if c.units < (n-sampled)/c.structs || size > 1000 {
			continue
		}
		for missing := 1; missing <= size; missing++ {
			if units, _ := repeatsOf(t, all, c.loose, missing); units >= c.units {
				t.Errorf("%s: %d units, although %d bytes are missing", c.what, units, missing)
			}
		}
	}
}

// An empty list may have any type, so its type must not be required of other lists.
func TestListsWithoutElementsHaveNoType(t *testing.T) {
	b := make([]byte, 8)
	var at [sampled + 1]int
	for i := range 20 {
		at[min(i, sampled)] = len(b)
		elements := i / 10
		b = append(AppendList(append(b, TypeList, 0, 1), TypeI32, elements), make([]byte, 4*elements)...)
		b = append(b, TypeStop)
	}
	at[sampled] = at[sampled-1] + 9
	if units, structs, _ := repeats(b, &at, 16, true); units != 10-sampled || structs != 1 {
		t.Errorf("%d units of %d", units, structs)
	}
}

// Structs with many values have no layout, because there is no room for it.
func TestLayoutsAreBounded(t *testing.T) {
	b := make([]byte, 8)
	var at [sampled + 1]int
	for i := range 20 {
		if i <= sampled {
			at[i] = len(b)
		}
		b = AppendList(append(b, TypeList, 0, 1), TypeString, 1000)
		b = append(b, bytes.Repeat([]byte{0, 0, 0, 1, 'x'}, 1000)...)
		b = append(b, TypeStop)
	}
	if units, _, next := repeats(b, &at, 16, false); units != 0 || next != at[sampled] {
		t.Errorf("%d units", units)
	}
}
