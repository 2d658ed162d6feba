package thrift_test

import (
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"
	"unsafe"

	"github.com/slipstream-go/slipstream/thrift"
)

func fullJSON(t testing.TB, o thrift.JSON) []byte {
	t.Helper()
	v := full()
	v.Payload = []byte("payload")
	b, err := v.AppendJSON(nil, o)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

func TestJSONTruncatedAtEveryByteIsAnError(t *testing.T) {
	b := fullJSON(t, thrift.JSON{})
	for n := range b {
		var e *thrift.JSONError
		if err := new(Order).ReadJSON(new(thrift.Reader), b[:n:n]); !errors.As(err, &e) || e.Offset > n {
			t.Fatalf("%d bytes of %d: %v", n, len(b), err)
		}
	}
}

func TestJSONDepthIsBounded(t *testing.T) {
	nested := func(n int) string {
		return strings.Repeat(`{"id":1,"parent":`, n-1) + `{"id":1}` + strings.Repeat("}", n-1)
	}
	if err := new(Order).ReadJSON(new(thrift.Reader), []byte(nested(thrift.MaxDepth))); err != nil {
		t.Errorf("%d structs: %v", thrift.MaxDepth, err)
	}
	for what, in := range map[string]string{
		"structs":         nested(thrift.MaxDepth + 1),
		"unknown arrays":  `{"id":1,"x":` + strings.Repeat("[", 1000) + strings.Repeat("]", 1000) + `}`,
		"unknown objects": `{"id":1,"x":` + strings.Repeat(`{"a":`, 1000) + "1" + strings.Repeat("}", 1000) + `}`,
		"unclosed":        strings.Repeat("[", 1<<20),
	} {
		var e *thrift.JSONError
		if err := new(Order).ReadJSON(new(thrift.Reader), []byte(in)); !errors.As(err, &e) || e.Problem != "values are nested too deeply" {
			t.Errorf("%s: %v", what, err)
		}
	}
	loop := &Order{ID: 1}
	loop.Parent = loop
	var e *thrift.JSONError
	b, err := loop.AppendJSON([]byte("x"), thrift.JSON{})
	if !errors.As(err, &e) || e.Path != strings.TrimSuffix(strings.Repeat("parent.", thrift.MaxDepth), ".") || string(b) != "x" {
		t.Errorf("a struct that contains itself: %v, %q", err, b)
	}
}

// Small inputs must not take much memory, and large ones only as much as MaxMemory allows.
func TestJSONBombsDoNotAllocate(t *testing.T) {
	const n = 300_000
	for what, in := range map[string]string{
		"structs":           `{"id":1,"lines":[{"id":1}` + strings.Repeat(`,{}`, n) + `]}`,
		"structs that end":  `{"id":1,"lines":[` + strings.Repeat(`{},`, n),
		"maps":              `{"id":1,"states":{` + strings.Repeat(`"1":[],`, n) + `"x":[]}}`,
		"brackets":          `{"id":1,"x":[` + strings.Repeat(`[],`, n) + `x]}`,
		"the same again":    `{"id":1` + strings.Repeat(`,"parent":{"id":1}`, n) + `,"id":"x"}`,
		"quotation marks":   `{"id":1,"x":"` + strings.Repeat(`\"`, n),
		"commas in no list": `{"id":1,` + strings.Repeat(`,`, n) + `}`,
	} {
		got := allocated(func() {
			if err := new(Order).ReadJSON(new(thrift.Reader), []byte(in)); err == nil {
				t.Errorf("%s is accepted", what)
			}
		})
		if limit := uint64(2*64*len(in) + 8<<20); got > limit {
			t.Errorf("%s: %d bytes allocated for %d, limit %d", what, got, len(in), limit)
		}
	}
	in := `{"id":1,"codes":[` + strings.Repeat("1,", 1000) + "1]}"
	var e *thrift.JSONError
	if err := new(Order).ReadJSON(&thrift.Reader{MaxMemory: 1000}, []byte(in)); !errors.As(err, &e) || e.Path != "codes" {
		t.Errorf("1001 numbers in 1000 bytes: %v", err)
	}
	if err := new(Order).ReadJSON(&thrift.Reader{MaxMemory: 9000}, []byte(in)); err != nil {
		t.Errorf("1001 numbers in 9000 bytes: %v", err)
	}
}

func TestJSONSaysWhereStringsLie(t *testing.T) {
	b := []byte(`{"id":1,"name":"a name","tags":["a tag","an\tescape"]}`)
	for _, m := range []thrift.Memory{thrift.MemoryShared, thrift.MemorySeparate, thrift.MemoryFrame} {
		var to Order
		if err := to.ReadJSON(&thrift.Reader{Memory: m}, b); err != nil {
			t.Fatal(err)
		}
		if alias := m == thrift.MemoryFrame; within(to.Name.V, b) != alias || within(to.Tags[0], b) != alias || within(to.Tags[1], b) {
			t.Errorf("memory %d: strings refer to the input: %v", m, !alias)
		}
		if to.Tags[1] != "an\tescape" {
			t.Errorf("memory %d: %q", m, to.Tags[1])
		}
	}
}

func TestWritingJSONDoesNotAllocate(t *testing.T) {
	v := sized(20_000)
	v.Attrs = map[string]string{"a": "b", "c": "d"}
	b, err := v.AppendJSON(nil, thrift.JSON{})
	if err != nil {
		t.Fatal(err)
	}
	v.AppendJSON(b[:0], thrift.JSON{})
	if n := testing.AllocsPerRun(10, func() {
		b, _ = v.AppendJSON(b[:0], thrift.JSON{})
	}); n >= 1 { // a garbage collection can empty the pool
		t.Errorf("%v allocations", n)
	}
}

// In structs with many fields, the names of fields are found, and other names are not.
func TestJSONOfManyFields(t *testing.T) {
	const n = 100
	type many [n]thrift.Opt[int32]
	table := thrift.Table{Structs: []thrift.StructInfo{{Name: "many", Size: unsafe.Sizeof(many{}), New: thrift.NewOf[many]}}}
	var in []string
	for i := range n {
		name := fmt.Sprint("field", i*i)
		table.Structs[0].Fields = append(table.Structs[0].Fields, thrift.FieldInfo{
			Name: name, ID: uint16(i), Kind: thrift.FieldOpt, Offset: uintptr(i) * unsafe.Sizeof(many{}[0]), Type: &thrift.InfoI32, Required: i%2 == 0,
		})
		in = append(in, fmt.Sprintf("%q:%d", name, i), fmt.Sprintf("%q:-1", name+"x"), `"f":-1`)
	}
	read := func(members []string) (v many, err error) {
		return v, table.ReadJSON(new(thrift.Reader), []byte("{"+strings.Join(members, ",")+"}"), unsafe.Pointer(&v), 0)
	}
	rand.New(rand.NewPCG(1, 2)).Shuffle(len(in), func(i, j int) { in[i], in[j] = in[j], in[i] })
	v, err := read(in)
	if err != nil {
		t.Fatal(err)
	}
	for i := range v {
		if v[i] != thrift.Some(int32(i)) {
			t.Errorf("field %d: %v", i, v[i])
		}
	}
	var without []string
	for _, member := range in {
		if !strings.HasPrefix(member, `"field9604":`) {
			without = append(without, member)
		}
	}
	var e *thrift.JSONError
	if _, err := read(without); !errors.As(err, &e) || e.Problem != "the required field field9604 is missing" {
		t.Error(err)
	}
}

// FuzzReadJSON checks for every input that reading ends without a panic and accepts only JSON, and
// that an accepted value is unchanged after it is written, with every option, and read again.
func FuzzReadJSON(f *testing.F) {
	f.Add(fullJSON(f, thrift.JSON{SortedKeys: true}))
	f.Add(fullJSON(f, thrift.JSON{I64Strings: true}))
	f.Add([]byte(`{"id":1,"x":[1e5,null,true,"\u0041",{"a":[]}],"status":7,"states":{"7":[1,"PAID"]}}`))
	f.Add([]byte(`{"bools":{"true":1},"doubles":[[1.5,{"text":"a"}],["NaN",{"number":"7"}]],"binaries":{"//4=":"x"},"enums":{"5":""}}`))
	f.Fuzz(checkJSON)
}

func checkJSON(t *testing.T, b []byte) {
	read := func(b []byte, m thrift.Memory) (*Order, *Keys, bool) {
		v, k := new(Order), new(Keys)
		r := thrift.Reader{Memory: m}
		isOrder := v.ReadJSON(&r, b) == nil
		isKeys := tableOfKeys.ReadJSON(&r, b, unsafe.Pointer(k), 0) == nil
		if !isOrder {
			v = nil
		}
		if !isKeys {
			k = nil
		}
		return v, k, isOrder || isKeys
	}
	v, k, ok := read(b, thrift.MemoryShared)
	if !ok {
		return
	}
	if !json.Valid(b) {
		t.Fatalf("invalid JSON was accepted: %q", b)
	}
	for _, o := range []thrift.JSON{{}, {SortedKeys: true}, {I64Strings: true}} {
		if v != nil {
			text, err := v.AppendJSON(nil, o)
			again, _, _ := read(text, thrift.MemoryFrame)
			if err != nil || !json.Valid(text) || again == nil || again.String() != v.String() {
				t.Fatalf("%v: %q is written as %q, which is read as\n%v, want\n%v", err, b, text, again, v)
			}
		}
		if k != nil {
			text, err := k.json(o)
			_, again, _ := read([]byte(text), thrift.MemorySeparate)
			if err != nil || !json.Valid([]byte(text)) || again == nil || k.text() != again.text() {
				t.Fatalf("%v: %q is written as %q, which is read as\n%v, want\n%v", err, b, text, again, k)
			}
		}
	}
}

func (p *Keys) text() string { return tableOfKeys.String(unsafe.Pointer(p), 0) }

func TestDamagedJSON(t *testing.T) {
	rnd := rand.New(rand.NewPCG(5, 6))
	small := full()
	small.Tags, small.Lines = small.Tags[:2], small.Lines[:3]
	sound, err := small.AppendJSON(nil, thrift.JSON{})
	if err != nil {
		t.Fatal(err)
	}
	accepted := 0
	for range 3000 {
		b := append([]byte(nil), sound...)
		for range 1 + rnd.IntN(3) {
			switch i := rnd.IntN(len(b)); rnd.IntN(3) {
			case 0:
				b[i] = `{}[]:,"\ 0123456789-.eEtrufalsn`[rnd.IntN(31)]
			case 1:
				b[i] ^= 1 << rnd.IntN(8)
			case 2:
				b = append(b[:i:i], b[min(len(b), i+1+rnd.IntN(8)):]...)
				b = append(b, '}')
			}
		}
		if new(Order).ReadJSON(new(thrift.Reader), b) == nil {
			accepted++
		}
		checkJSON(t, b)
	}
	if accepted < 100 || accepted > 2900 {
		t.Errorf("%d of 3000 damaged inputs were accepted, want 100 to 2900", accepted)
	}
}
