package testpkg

import (
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/names"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shared"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

// Tests of the methods that options add, for packages that have them.

func TestMapsOfEntries(t *testing.T) {
	p := &shop.Nested{ListsByList: []thrift.Entry[[]int32, []int32]{{Key: []int32{1, 2}, Value: []int32{3}}, {Key: []int32{}, Value: nil}}}
	p.ByStruct = []thrift.Entry[shared.Point, shop.Nested]{{Key: shared.Point{X: 1}, Value: shop.Nested{Texts: map[string]string{"a": "b"}}}}
	q := p.Copy()
	if !p.Equal(q) || !strings.Contains(p.String(), "lists_by_list: {[1, 2]: [3], []: []}") {
		t.Errorf("%v, want %v", q, p)
	}
	q.ListsByList[0], q.ListsByList[1] = q.ListsByList[1], q.ListsByList[0]
	if !p.Equal(q) {
		t.Error("Equal compares the order of entries")
	}
	q.ListsByList[1].Key[1] = 9
	if p.Equal(q) || p.ListsByList[0].Key[1] != 2 {
		t.Error("Equal does not compare a key, or the copy shares it")
	}
	q = p.Copy()
	q.ByStruct[0].Value.Texts["a"] = "c"
	if p.Equal(q) || p.ByStruct[0].Value.Texts["a"] != "b" {
		t.Error("Equal does not compare a value, or the copy shares it")
	}
}

func TestErrorsHaveNamesOfFields(t *testing.T) {
	b := (&shop.Order{ID: 1, Lines: []shop.Line{{Sku: "a"}, {Sku: "b"}}}).AppendThrift(nil)
	at := strings.Index(string(b), "\x00\x00\x00\x01b")
	b[at+2] = 0xff
	err := thrift.Unmarshal(b, new(shop.Order))
	if err == nil || !strings.Contains(err.Error(), "field lines[1].sku: ") {
		t.Error(err)
	}
}

func TestUnknownFieldsAreKept(t *testing.T) {
	in := (&shop.NotFound{ID: 5, Message: "gone"}).AppendThrift(nil)
	for _, e := range encodings {
		var p names.ParseColor // without fields
		if err := thrift.Unmarshal(in, &p); err != nil {
			t.Fatal(err)
		}
		var out shop.NotFound
		if _, err := e.decode(new(thrift.Reader), e.encode(&p), &out); err != nil || out.ID != 5 || out.Message != "gone" {
			t.Errorf("%s: %v, %v", e.name, &out, err)
		}
		if c := p.Copy(); !c.Equal(&p) || p.SizeThrift() != len(in) {
			t.Errorf("%s: %v", e.name, c)
		}
	}
}

// Equal values have the same encoding, because the code is generated with sorted keys.
func TestKeysAreSorted(t *testing.T) {
	f := &filler{Rand: rand.New(rand.NewPCG(1, 1))}
	for range 20 {
		p := filled(structs["shop.Nested"], f).(*shop.Nested)
		p.ByBool = map[bool][][]byte{true: {}, false: nil}
		p.ByUUID = map[thrift.UUID]float64{{1}: 1, {}: 2, {0: 2, 15: 1}: 3, {15: 1}: 4}
		for _, e := range encodings {
			if b := e.encode(p); string(b) != string(e.encode(p.Copy())) {
				t.Fatalf("%s: two encodings of %v differ", e.name, p)
			}
		}
	}
}
