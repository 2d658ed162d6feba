package thrift

import (
	"math"
	"strings"
	"testing"
	"unsafe"
)

// kitexPart and kitexWhole look like structs that are generated for Kitex.
type kitexPart struct {
	Number int32
	Text   string
}

func (p *kitexPart) Reset() { *p = kitexPart{Number: 7} }

type kitexWhole struct {
	Kind    wide
	Parts   []*kitexPart
	ByRatio map[float64]*kitexPart
	IDs     []int64
	Maybe   *wide
	Part    *kitexPart
	Sizes   map[wide]int8
	Grid    [][]int64
	Words   []string
	Bytes   []byte
}

func (p *kitexWhole) Reset() { *p = kitexWhole{Words: []string{"a"}} }

var (
	infoKitexPart    = TypeInfo{Wire: TypeStruct, Struct: 0}
	infoKitexPointer = TypeInfo{Wire: TypeStruct, Struct: 0, Pointer: true}
	infoKitexParts   = TypeInfo{Wire: TypeList, Size: SizeOfList, Elem: &infoKitexPointer}
	infoKitexRatios  = TypeInfo{Wire: TypeMap, Size: SizeOfMap, Key: &InfoDoubleKey, Elem: &infoKitexPointer, Map: MapOf[float64, *kitexPart]}
	infoKitexSizes   = TypeInfo{Wire: TypeMap, Size: SizeOfMap, Key: &InfoWideEnum, Elem: &InfoI8, Map: MapOf[wide, int8]}
	infoKitexGrid    = TypeInfo{Wire: TypeList, Size: SizeOfList, Elem: &InfoI64s, New: NewOf[[]int64]}
)

var kitexTable = Table{Kitex: true, Structs: []StructInfo{
	{Name: "Part", Size: unsafe.Sizeof(kitexPart{}), New: NewOf[kitexPart], Reset: ResetOf[kitexPart], Fields: []FieldInfo{
		{Name: "number", ID: 1, Always: true, Default: true, Offset: unsafe.Offsetof(kitexPart{}.Number), Type: &InfoI32},
		{Name: "text", ID: 2, Always: true, Offset: unsafe.Offsetof(kitexPart{}.Text), Type: &InfoString},
	}},
	{Name: "Whole", Size: unsafe.Sizeof(kitexWhole{}), New: NewOf[kitexWhole], Reset: ResetOf[kitexWhole], Fields: []FieldInfo{
		{Name: "kind", ID: 1, Always: true, Offset: unsafe.Offsetof(kitexWhole{}.Kind), Type: &InfoWideEnum},
		{Name: "parts", ID: 2, Always: true, Offset: unsafe.Offsetof(kitexWhole{}.Parts), Type: &infoKitexParts},
		{Name: "by_ratio", ID: 3, Always: true, Offset: unsafe.Offsetof(kitexWhole{}.ByRatio), Type: &infoKitexRatios},
		{Name: "ids", ID: 4, Always: true, Strings: true, Offset: unsafe.Offsetof(kitexWhole{}.IDs), Type: &InfoI64s},
		{Name: "maybe", ID: 5, Kind: FieldPointer, Offset: unsafe.Offsetof(kitexWhole{}.Maybe), Type: &InfoWideEnum},
		{Name: "part", ID: 6, Always: true, Offset: unsafe.Offsetof(kitexWhole{}.Part), Type: &infoKitexPart},
		{Name: "sizes", ID: 7, Always: true, Offset: unsafe.Offsetof(kitexWhole{}.Sizes), Type: &infoKitexSizes},
		{Name: "grid", ID: 8, Always: true, Strings: true, Offset: unsafe.Offsetof(kitexWhole{}.Grid), Type: &infoKitexGrid},
		{Name: "the \"words\"", ID: 9, Kind: FieldSparse, Default: true, Offset: unsafe.Offsetof(kitexWhole{}.Words), Type: &InfoStrings},
		{Name: "bytes", ID: 10, Kind: FieldSparse, Offset: unsafe.Offsetof(kitexWhole{}.Bytes), Type: &InfoBinary},
	}},
}}

func (p *kitexWhole) json() (string, error) {
	b, err := kitexTable.AppendJSON(nil, unsafe.Pointer(p), 1, JSON{SortedKeys: true})
	return string(b), err
}

func (p *kitexWhole) read(text string) error {
	return kitexTable.FromJSON([]byte(text), unsafe.Pointer(p), 1)
}

// Fields that are not optional have their value from the JSON or their default. Structs that are
// nil have the defaults of their fields.
func TestKitexTables(t *testing.T) {
	kind := wide(-3)
	for want, v := range map[string]*kitexWhole{
		`{"kind":0,"parts":[],"by_ratio":{},"ids":[],"part":{"number":7},"sizes":{},"grid":[],"the \"words\"":["a"]}`: {},
		`{"kind":5,"parts":[{"number":7},{"number":0,"text":"x"}],"by_ratio":{"-2.5":{"number":7},"1000000000000000000000":{"number":1,"text":""}},` +
			`"ids":["1","-9223372036854775808"],"maybe":-3,"part":{"number":2,"text":""},"sizes":{"-1":1,"5":2},"grid":[[1]],"the \"words\"":[],"bytes":"AQ=="}`: {
			Kind: 5, Parts: []*kitexPart{nil, {Text: "x"}}, ByRatio: map[float64]*kitexPart{1e21: {Number: 1}, -2.5: nil}, IDs: []int64{1, math.MinInt64}, Maybe: &kind,
			Part: &kitexPart{Number: 2}, Sizes: map[wide]int8{-1: 1, 5: 2}, Grid: [][]int64{{1}}, Words: []string{}, Bytes: []byte{1}},
	} {
		got, err := v.json()
		if err != nil || got != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
		again := &kitexWhole{Kind: 9, Parts: []*kitexPart{{Number: 9}}, IDs: []int64{9}, Grid: [][]int64{{9}}, Sizes: map[wide]int8{9: 9}}
		if err := again.read(got); err != nil {
			t.Fatal(err)
		}
		// Absent fields of a struct that is present are zero.
		want = strings.ReplaceAll(want, `{"number":7}`, `{"number":7,"text":""}`)
		if got, err := again.json(); err != nil || got != want {
			t.Errorf("%s, %v\nwant %s", got, err, want)
		}
	}
	old := &kitexPart{Number: 1}
	p := &kitexWhole{Kind: 1, Parts: []*kitexPart{old}, ByRatio: map[float64]*kitexPart{1: old}, IDs: []int64{1}, Maybe: &kind, Part: old, Sizes: map[wide]int8{1: 1}, Grid: [][]int64{{1}}, Words: []string{"b"}, Bytes: []byte{1}}
	if err := p.read(`{"parts":null,"maybe":4}`); err != nil || p.Kind != 0 || p.Parts != nil || p.ByRatio != nil || p.IDs != nil || p.Part == old || p.Part.Number != 7 || p.Sizes != nil || p.Grid != nil ||
		p.Words[0] != "b" || p.Bytes[0] != 1 || *p.Maybe != 4 || kind != -3 || old.Number != 1 {
		t.Errorf("%v, %+v", err, p)
	}
}

func TestMistakesInJSONOfKitex(t *testing.T) {
	for text, want := range map[string]string{
		`{"kind":"SOME"}`:              "field kind: ",
		`{"kind":4294967296}`:          "field kind: an integer does not fit into 32 bits",
		`{"parts":[null]}`:             "field parts[0]: expected an object",
		`{"parts":[{},{"number":""}]}`: "field parts[1].number: ",
		`{"by_ratio":{"x":{}}}`:        "the string is not a number",
		`{"sizes":{"4294967296":1}}`:   "an integer does not fit into 32 bits",
	} {
		err := new(kitexWhole).read(text)
		if err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%.40s: %v, want %q", text, err, want)
		}
	}
	for _, v := range []float64{math.NaN(), math.Inf(-1)} {
		table := Table{Kitex: true, Structs: []StructInfo{{Name: "A", Size: 8, New: NewOf[float64], Fields: []FieldInfo{{Name: "a", Always: true, Type: &InfoDouble}}}}}
		if b, err := table.AppendJSON(nil, unsafe.Pointer(&v), 0, JSON{}); err == nil || !strings.Contains(err.Error(), "field a: a double is NaN or infinite") {
			t.Errorf("%s, %v", b, err)
		}
	}
	r := &Reader{MaxMemory: 1000}
	text := []byte(`{"parts":[` + strings.Repeat("{},", 100) + `{}]}`)
	var p kitexWhole
	if err := kitexTable.ReadJSON(r, text, unsafe.Pointer(&p), 1); err == nil {
		t.Error("structs do not count as memory")
	}
}

// FuzzKitexJSON checks that a value that was read from any text is unchanged after it is written
// and read again.
func FuzzKitexJSON(f *testing.F) {
	for _, text := range []string{`{}`, `{"kind":5,"parts":[{"number":1},{}],"by_ratio":{"1.5":{"text":"x"}},"ids":["1",2],"maybe":-3,"part":{},"sizes":{"5":2},"grid":[[1],[]],"the \"words\"":["a"],"bytes":"AQ=="}`,
		`{"parts":null,"part":null,"by_ratio":{"1e400":{}}}`, `{"sizes":{"4294967295":1}}`} {
		f.Add([]byte(text))
	}
	f.Fuzz(func(t *testing.T, text []byte) {
		var p, again kitexWhole
		if p.read(string(text)) != nil {
			return
		}
		want, err := p.json()
		if err != nil {
			t.Fatalf("%v\n%s", err, text)
		}
		if err := again.read(want); err != nil {
			t.Fatalf("%v\n%s", err, want)
		}
		if got, err := again.json(); err != nil || got != want {
			t.Fatalf("%v\n%s, want\n%s", err, got, want)
		}
	})
}
