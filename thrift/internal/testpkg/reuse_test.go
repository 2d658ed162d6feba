package testpkg

import (
	"math/rand/v2"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

// A struct that is read into again reuses its required structs. In elements of lists, it does so
// only if they have no maps, which may take long to clear.
func TestRequiredStructsAreUsedAgain(t *testing.T) {
	f := &filler{Rand: rand.New(rand.NewPCG(1, 1))}
	link := func() shop.Link {
		return *filled(func() thrift.CompactStruct { return new(shop.Link) }, f).(*shop.Link)
	}
	first, second, one := link(), link(), link()
	required := filled(func() thrift.CompactStruct { return new(shop.Required) }, f).(*shop.Required)
	long := &shop.Chained{Link: &first, Links: []shop.Link{first, second}, Each: []shop.Around{{HasAMap: required}}, Maybe: &one}
	short := &shop.Chained{Link: &second, Links: []shop.Link{second}, Each: []shop.Around{{HasAMap: required}}}
	for _, e := range encodings {
		got, want := new(shop.Chained), new(shop.Chained)
		r := new(thrift.Reader)
		if _, err := e.decode(r, e.encode(long), got); err != nil || !same(got, long) {
			t.Fatalf("%s: %v, %+v", e.name, err, got)
		}
		kept, bounds, elem, dropped := got.Link, got.Link.Bounds, got.Links[0].Bounds, got.Each[0].HasAMap
		got.Reset()
		if got.Maybe != nil || got.Link.Order != 7 || got.Link.Bounds.Low != -1 || len(got.Link.Bounds.Numbers) != 0 {
			t.Errorf("%s: Reset has left %+v, with %+v", e.name, got, got.Link.Bounds)
		}
		b := e.encode(short)
		if _, err := e.decode(r, b, got); err != nil || !same(got, short) {
			t.Fatalf("%s: %v, %+v", e.name, err, got)
		}
		if got.Link != kept || got.Link.Bounds != bounds || got.Links[0].Bounds != elem {
			t.Errorf("%s: required structs were not reused", e.name)
		}
		if got.Each[0].HasAMap == dropped {
			t.Errorf("%s: a struct with a map in an element was reused", e.name)
		}
		if _, err := e.decode(r, b, want); err != nil || !same(got, want) {
			t.Errorf("%s: %v", e.name, err)
		}
	}
}

// If a message contains a struct twice, nothing remains of the first one, whether its memory is new
// or reused.
func TestNothingIsLeftOfAnEarlierStruct(t *testing.T) {
	first := &shop.Link{Order: 5, Bounds: &shop.Bounds{Low: 3, Numbers: []int32{1, 2}}}
	// The second struct has only required fields: link, bounds, numbers without elements.
	for i, parts := range [][2]string{
		{"\x0c\x00\x01", "\x0c\x00\x02\x0f\x00\x02\x08\x00\x00\x00\x00\x00\x00"},
		{"\x0c\x02", "\x0c\x04\x09\x04\x05\x00\x00"},
	} {
		e := encodings[i]
		b := []byte(parts[0] + string(e.encode(first)) + parts[0] + parts[1] + "\x00")
		got := new(shop.Chained)
		for range 2 {
			got.Reset()
			if _, err := e.decode(new(thrift.Reader), b, got); err != nil {
				t.Fatalf("%s: %v\n%x", e.name, err, b)
			}
			if got.Link.Order != 7 || got.Link.Bounds.Low != -1 || len(got.Link.Bounds.Numbers) != 0 {
				t.Errorf("%s: %+v, %+v", e.name, got.Link, got.Link.Bounds)
			}
		}
	}
}
