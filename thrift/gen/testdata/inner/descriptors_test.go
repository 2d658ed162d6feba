package testpkg

import (
	"testing"

	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/ids"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shared"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/shop"
)

// TestGeneratedModule of thrift/gen runs this for packages with descriptors.

func TestDescriptorsAreTheDeclarations(t *testing.T) {
	f, err := shop.IDLOfShop.File()
	if err != nil {
		t.Fatal(err)
	}
	find := f.Service("Orders").Function("find")
	args, result := find.ArgsStruct(), find.ResultStruct()
	if args.Field("query").Type.Struct() != f.Type("Query") || args.Field("limit").Default.Int != 10 || result.FieldByID(0).Type.Struct().Name != "Order" ||
		result.FieldByID(1).Type.Struct().Kind != idl.Exception || !f.Service("Orders").Function("forget").Oneway || f.Service("Orders").Base.Name != "Base" {
		t.Errorf("the function is %+v", find)
	}
	if v := f.Type("Status").(*idl.Enum).Value("RETURNED"); v.Number != int32(shop.StatusReturned) {
		t.Errorf("the value is %+v", v)
	}
	order, err := idl.StructOf(new(shop.Order))
	if err != nil || order != f.Type("Order") {
		t.Fatalf("%v, %v", order, err)
	}
	id := order.Field("id")
	if tag, _ := id.Annotations.Get("go.tag"); id.ID != 1 || id.Requirement != idl.Required || id.Type.True().Kind != idl.I64 || tag != `json:"id"` {
		t.Errorf("the field is %+v", id)
	}
	// The struct is declared in a file of another package.
	if p := order.Field("place").Type.Struct(); p == nil || p.Name != "Point" || p.File.Namespace("go") != "testpkg.shared" {
		t.Errorf("the place is %+v", p)
	}
	for _, v := range []idl.Described{new(shop.Query), new(shop.NotFound), new(shop.Nested), new(shared.Point), new(ids.Spread)} {
		if s, err := idl.StructOf(v); err != nil || s == nil {
			t.Errorf("%T: %v", v, err)
		}
	}
}
