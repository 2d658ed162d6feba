package speed

import (
	"fmt"

	rt "github.com/slipstream-go/slipstream/bench/thriftstamp/rt"
)

// choices returns operations that compare the Go types of sets and enums with n
// elements.
func choices(n int) []Op {
	list := make([]string, n)
	set := make(map[string]struct{}, n)
	narrow, wide := make([]int32, n), make([]int64, n)
	for i := range list {
		list[i] = fmt.Sprintf("element %d", i)
		set[list[i]] = struct{}{}
		narrow[i], wide[i] = int32(i), int64(i)
	}
	b := rt.StringsField(nil, 1, list)[3:]
	buf := make([]byte, 0, 2*len(b)+8*n)
	return []Op{
		{"set append", "slice", func() { buf = rt.StringsField(buf[:0], 1, list) }},
		{"set append", "checked", func() {
			if !rt.Distinct(list) {
				panic("not distinct")
			}
			buf = rt.StringsField(buf[:0], 1, list)
		}},
		{"set append", "map", func() { buf = rt.StringSetField(buf[:0], 1, set) }},
		{"set read", "slice", func() { var to []string; rt.ReadStrings(b, 0, &to) }},
		{"set read", "map", func() { var to map[string]struct{}; rt.ReadStringSet(b, 0, &to) }},
		{"enums append", "int32", func() { buf = rt.AppendI32s(buf[:0], narrow) }},
		{"enums append", "int64", func() { buf = rt.AppendNarrowed(buf[:0], wide) }},
	}
}
