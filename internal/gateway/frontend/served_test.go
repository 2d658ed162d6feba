package frontend

import (
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// of is a frontend's own kind of resource.
type of struct {
	Served
	more string
}

func TestResources(t *testing.T) {
	columns := []resource.KeyColumn{{Name: "n", Kind: resource.Integer}}
	var all Resources[*of]
	for i, r := range Numbered([]Resource{{Name: "a"}, {Name: "b", Columns: columns}}) {
		if int(r.ID) != i {
			t.Errorf("%s has ID %d, want %d", r.Name, r.ID, i)
		}
		if err := all.Add(&of{more: r.Name + "!"}, r); err != nil {
			t.Fatal(err)
		}
	}
	a, b := all.ByName["a"], all.ByName["b"]
	if a == nil || a.more != "a!" || a.Columns() != nil || all.List[1] != b || b.Columns() == nil {
		t.Fatalf("got %+v and %+v", a, b)
	}
	if err := all.SetColumns(7, columns); err != nil {
		t.Errorf("columns of a resource that is not served: %v", err)
	}
	if err := all.SetColumns(0, columns); err != nil || a.Columns() == nil {
		t.Errorf("columns that came later: %v", err)
	}
	for _, wrong := range [][]resource.KeyColumn{{}, make([]resource.KeyColumn, resource.MaxColumns+1)} {
		if all.SetColumns(0, wrong) == nil || all.Add(new(of), Resource{Name: "c", Columns: wrong}) == nil {
			t.Errorf("a key of %d columns was accepted", len(wrong))
		}
	}
	if all.ByName["c"] != nil || len(all.List) != 2 {
		t.Error("a resource that was refused is served")
	}
}
