package testpkg

import (
	"math/rand/v2"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

// A struct that is read into again uses the structs that it requires again. In elements of lists it does
// so only if they have no maps, which may take long to clear.
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
			t.Errorf("%s: structs that are required were made again", e.name)
		}
		if got.Each[0].HasAMap == dropped {
			t.Errorf("%s: a struct with a map in an element was used again", e.name)
		}
		if _, err := e.decode(r, b, want); err != nil || !same(got, want) {
			t.Errorf("%s: %v", e.name, err)
		}
	}
}
