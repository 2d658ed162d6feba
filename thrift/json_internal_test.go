package thrift

import (
	"reflect"
	"testing"
	"unsafe"
)

// pairs is a map whose keys Go cannot compare.
type pairs[K, V any] []struct {
	Key   K
	Value V
}

func (m *pairs[K, V]) length() int             { return len(*m) }
func (m *pairs[K, V]) isNil() bool             { return *m == nil }
func (m *pairs[K, V]) alloc(n int)             { *m = make(pairs[K, V], 0, n) }
func (m *pairs[K, V]) put(k, v unsafe.Pointer) { panic("not used") }

func (m *pairs[K, V]) putCopy(k unsafe.Pointer, copy func(to unsafe.Pointer)) { panic("not used") }
func (m *pairs[K, V]) get(k unsafe.Pointer) unsafe.Pointer                    { return nil }

func (m *pairs[K, V]) each(f func(k, v unsafe.Pointer) bool) {
	for i := range *m {
		if !f(unsafe.Pointer(&(*m)[i].Key), unsafe.Pointer(&(*m)[i].Value)) {
			return
		}
	}
}

func (m *pairs[K, V]) add() (k, v unsafe.Pointer) {
	*m = append(*m, struct {
		Key   K
		Value V
	}{})
	e := &(*m)[len(*m)-1]
	return unsafe.Pointer(&e.Key), unsafe.Pointer(&e.Value)
}

// point has a default value.
type point struct {
	X Opt[int32]
	Y Opt[int32]
}

func (p *point) Reset() { *p = point{Y: Some[int32](7)} }

// Maps with keys that are structs or lists are arrays of arrays. Keys and values that are structs
// have their defaults, including elements of lists.
func TestJSONOfKeysThatGoCannotCompare(t *testing.T) {
	type holder struct {
		Points pairs[point, []point]
		Lists  pairs[[]string, point]
	}
	infoPoint := &TypeInfo{Wire: TypeStruct, Struct: 1}
	points := &TypeInfo{Wire: TypeList, Size: SizeOfList, Elem: infoPoint}
	table := Table{Structs: []StructInfo{
		{Name: "holder", Size: unsafe.Sizeof(holder{}), New: NewOf[holder], Fields: []FieldInfo{
			{Name: "points", ID: 1, Offset: unsafe.Offsetof(holder{}.Points), Type: &TypeInfo{Wire: TypeMap, Size: SizeOfList, Key: infoPoint, Elem: points,
				Map: func(p unsafe.Pointer) MapAccess { return (*pairs[point, []point])(p) }}},
			{Name: "lists", ID: 2, Offset: unsafe.Offsetof(holder{}.Lists), Type: &TypeInfo{Wire: TypeMap, Size: SizeOfList, Key: &InfoStrings, Elem: infoPoint,
				Map: func(p unsafe.Pointer) MapAccess { return (*pairs[[]string, point])(p) }}},
		}},
		{Name: "point", Size: unsafe.Sizeof(point{}), New: NewOf[point], Reset: ResetOf[point], Fields: []FieldInfo{
			{Name: "x", ID: 1, Kind: FieldOpt, Offset: unsafe.Offsetof(point{}.X), Type: &InfoI32},
			{Name: "y", ID: 2, Kind: FieldOpt, Offset: unsafe.Offsetof(point{}.Y), Type: &InfoI32},
		}},
	}}
	var v holder
	in := `{"points":[[{"x":2},[{"x":3},{"y":4}]],[{"x":1,"y":1},[]]],"lists":[[["b"],{"x":5}],[["a","c"],{}]]}`
	if err := table.ReadJSON(new(Reader), []byte(in), unsafe.Pointer(&v), 0); err != nil {
		t.Fatal(err)
	}
	want := holder{
		pairs[point, []point]{
			{point{Some[int32](2), Some[int32](7)}, []point{{Some[int32](3), Some[int32](7)}, {Y: Some[int32](4)}}},
			{point{Some[int32](1), Some[int32](1)}, []point{}},
		},
		pairs[[]string, point]{{[]string{"b"}, point{Some[int32](5), Some[int32](7)}}, {[]string{"a", "c"}, point{Y: Some[int32](7)}}},
	}
	if !reflect.DeepEqual(v, want) {
		t.Errorf("read\n%+v, want\n%+v", v, want)
	}
	for o, text := range map[JSON]string{
		{}:                 `{"points":[[{"x":2,"y":7},[{"x":3,"y":7},{"y":4}]],[{"x":1,"y":1},[]]],"lists":[[["b"],{"x":5,"y":7}],[["a","c"],{"y":7}]]}`,
		{SortedKeys: true}: `{"points":[[{"x":1,"y":1},[]],[{"x":2,"y":7},[{"x":3,"y":7},{"y":4}]]],"lists":[[["a","c"],{"y":7}],[["b"],{"x":5,"y":7}]]}`,
	} {
		if got, err := table.AppendJSON(nil, unsafe.Pointer(&v), 0, o); err != nil || string(got) != text {
			t.Errorf("%v: %s, want\n%s", err, got, text)
		}
	}
	in = `{"points":[[{"x":2},[{"x":3}]],[{"x":1},[{"x":""}]]]}`
	err := table.ReadJSON(new(Reader), []byte(in), unsafe.Pointer(&v), 0)
	if want := `thrift: JSON: field points[1].value[0].x: expected an integer, found a string, at byte 46`; err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestEndOfString(t *testing.T) {
	for in, want := range map[string]int{`a"`: 1, `"`: 0, `\"`: -1, `\\"`: 2, `\\\"`: -1, `\""`: 2, `a\"b\\\"c\\"d"`: 11, ``: -1, `a`: -1} {
		if got := endOfString([]byte(in), 0); got != want {
			t.Errorf("%s: %d, want %d", in, got, want)
		}
	}
}

func TestJSONOfARequiredStructThatIsNil(t *testing.T) {
	type holder struct{ A, B *point }
	infoPoint := &TypeInfo{Wire: TypeStruct, Struct: 1}
	table := Table{Structs: []StructInfo{
		{Name: "holder", Size: unsafe.Sizeof(holder{}), New: NewOf[holder], Fields: []FieldInfo{
			{Name: "a", ID: 1, Required: true, Offset: unsafe.Offsetof(holder{}.A), Type: infoPoint},
			{Name: "b", ID: 2, Offset: unsafe.Offsetof(holder{}.B), Type: infoPoint},
		}},
		{Name: "point", Size: unsafe.Sizeof(point{}), New: NewOf[point]},
	}}
	b, err := table.AppendJSON(nil, unsafe.Pointer(&holder{}), 0, JSON{})
	var to holder
	if err != nil || string(b) != `{"a":{}}` || table.ReadJSON(new(Reader), b, unsafe.Pointer(&to), 0) != nil || to.A == nil {
		t.Errorf("%v: %s, read as %+v", err, b, to)
	}
}
