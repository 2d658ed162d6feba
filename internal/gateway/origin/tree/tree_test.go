package tree

import (
	"context"
	"errors"
	"reflect"
	"slices"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// fakeTable is a table of which column "id" is the key and columns that begin with "odd" can
// be neither joined nor keys.
type fakeTable struct {
	name    string
	columns []string
	keys    []ForeignKey // to the table dept
}

func (t *fakeTable) Name() string           { return t.name }
func (t *fakeTable) Column(name string) int { return slices.Index(t.columns, name) }
func (t *fakeTable) ColumnNames() []string  { return t.columns }

// fake is a catalog of three tables that remembers which nodes it has checked.
type fake struct {
	tables  []*fakeTable
	checked []string
}

func newFake() *fake {
	join := func(column string) ForeignKey {
		return ForeignKey{Text: column, On: []resource.Join{{Column: column, Parent: "id"}}}
	}
	return &fake{tables: []*fakeTable{
		{name: "dept", columns: []string{"id", "name", "odd"}},
		{name: "emp", columns: []string{"id", "dept", "odd"}, keys: []ForeignKey{join("dept")}},
		{name: "two", columns: []string{"a", "b"}, keys: []ForeignKey{join("a"), join("b")}},
	}}
}

func (f *fake) Table(_ context.Context, name string, _ int) (*fakeTable, error) {
	switch i := slices.IndexFunc(f.tables, func(t *fakeTable) bool { return t.name == name }); {
	case name == "broken":
		return nil, errBroken
	case i < 0:
		return nil, &NoTable{Problem: "no table " + name}
	default:
		return f.tables[i], nil
	}
}

var errBroken = errors.New("the connection is gone")

func (f *fake) ForeignKeys(from, to *fakeTable) (found []ForeignKey, problem string) {
	if from.name == "dept" {
		return nil, "a key that is none"
	}
	if to.name == "dept" {
		found = from.keys
	}
	return found, ""
}

func (f *fake) Joins(child *fakeTable, column int, parent *fakeTable, up int) (problem string) {
	if strings.HasPrefix(child.columns[column]+parent.columns[up], "odd") {
		return "odd columns"
	}
	return ""
}

func (f *fake) KeyKind(t *fakeTable, column int) (kind resource.Kind, problem string) {
	if strings.HasPrefix(t.columns[column], "odd") {
		return kind, "is odd"
	}
	return resource.Text, ""
}

func (f *fake) Unique(t *fakeTable, columns []int) (expected string) {
	if len(columns) == 1 && t.columns[columns[0]] == "id" {
		return ""
	}
	return "an index"
}

func (f *fake) Check(n *Node[*fakeTable], _ *resource.Node) error {
	f.checked = append(f.checked, n.Path+":"+n.Table.name)
	return nil
}

func child(name, table string, below ...resource.Child) resource.Child {
	return resource.Child{Name: name, Node: resource.Node{Table: table, Line: 7, Children: below}}
}

func TestResolve(t *testing.T) {
	root := resource.Node{Table: "dept", Columns: []string{"name", "id"}, Order: []resource.Order{{Column: "name"}}, Children: []resource.Child{child("emps", "emp")}}
	f := newFake()
	r := &Resolved[*fakeTable]{}
	r.Resource = &resource.Resource{Name: "depts", Key: []string{"id"}, Root: root}
	if err := r.Resolve(t.Context(), f); err != nil {
		t.Fatal(err)
	}
	emps := r.Nodes[1]
	if !slices.Equal(r.Root.Columns, []int{1, 0}) || !slices.Equal(r.KeyAt, []int{0}) || !slices.Equal(r.Root.Order, root.Order) ||
		!slices.Equal(r.Key, []resource.KeyColumn{{Name: "id", Kind: resource.Text}}) {
		t.Errorf("root %+v, key %v at %v", r.Root, r.Key, r.KeyAt)
	}
	if r.Root.Children[0].Node != emps || emps.Parent != r.Root || emps.Depth != 1 || !slices.Equal(emps.Columns, []int{0, 1, 2}) ||
		!slices.Equal(emps.On, []Join{{Column: 1, Parent: 0}}) {
		t.Errorf("child %+v", emps)
	}
	if want := []string{":dept", "emps:emp"}; !slices.Equal(f.checked, want) {
		t.Errorf("checked %q, want %q", f.checked, want)
	}
}

func TestResolveRefuses(t *testing.T) {
	dept := func(children ...resource.Child) resource.Node {
		return resource.Node{Table: "dept", Children: children}
	}
	on := func(c resource.Child, column, parent string) resource.Child {
		c.Node.On = []resource.Join{{Column: column, Parent: parent}}
		return c
	}
	for _, tt := range []struct {
		name string
		key  []string
		root resource.Node
		want string
	}{
		{"table", []string{"id"}, resource.Node{Table: "depth"}, "resource r (line 3): no table depth"},
		{"column", []string{"id"}, resource.Node{Table: "dept", Columns: []string{"nane"}}, `table dept has no column "nane"; did you mean "name"? there are name, id, odd`},
		{"column twice", []string{"id"}, resource.Node{Table: "dept", Columns: []string{"id", "id"}}, "column id of table dept is listed twice"},
		{"order", []string{"id"}, resource.Node{Table: "dept", Order: []resource.Order{{Column: "x"}}}, `no column "x"`},
		{"joined root", []string{"id"}, on(child("", "dept"), "id", "id").Node, "the root table dept has nothing to be joined to"},
		{"itself", []string{"id"}, dept(child("d", "emp", on(child("e", "dept"), "id", "id"))), "table dept contains itself"},
		{"name twice", []string{"id"}, dept(child("name", "emp")), `resource r (line 7): table dept has two members called "name"`},
		{"two keys", []string{"id"}, dept(child("t", "two")), "2 foreign keys lead from table two to dept: a; b; choose one of them with on"},
		{"no key to it", []string{"id"}, dept(child("e", "emp", child("t", "two"))), "no foreign key leads from table two to emp"},
		{"join", []string{"id"}, dept(on(child("e", "emp"), "odd", "id")), "odd columns"},
		{"join column", []string{"id"}, dept(on(child("e", "emp"), "x", "id")), `table emp has no column "x"`},
		{"join parent", []string{"id"}, dept(on(child("e", "emp"), "id", "x")), `table dept has no column "x"`},
		{"no key", nil, dept(), "no key; name the columns of table dept that form it"},
		{"key twice", []string{"id", "id"}, dept(), "key column id is listed twice"},
		{"odd key", []string{"odd"}, dept(), "key column dept.odd is odd"},
		{"key of many", []string{"name"}, dept(), "key (name) does not name one row: table dept has neither a primary key nor an index over exactly these columns"},
	} {
		r := &Resolved[*fakeTable]{}
		r.Resource = &resource.Resource{Name: "r", Line: 3, Key: tt.key, Root: tt.root}
		err := r.Resolve(t.Context(), newFake())
		if _, is := errors.AsType[*origin.SchemaError](err); !is || !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.name, err, tt.want)
		}
	}
	r := &Resolved[*fakeTable]{}
	r.Resource = &resource.Resource{Name: "r", Root: resource.Node{Table: "broken"}}
	if err := r.Resolve(t.Context(), newFake()); err != errBroken {
		t.Errorf("a broken connection: %v", err)
	}
}

func TestSets(t *testing.T) {
	declared := []resource.Resource{{Name: "a"}, {Name: "b", Line: 4}}
	set := origin.NewSet(declared)
	key := func(k resource.Kind) []resource.KeyColumn { return []resource.KeyColumn{{Name: "id", Kind: k}} }
	all := func() []*Resolved[*fakeTable] {
		return []*Resolved[*fakeTable]{
			{Outcome: Outcome{Resource: &declared[0], Key: key(resource.Text), Warnings: []string{"slow"}}},
			{Outcome: Outcome{Resource: &declared[1], Key: key(resource.Integer)}},
		}
	}
	a, err := Addition(set, all())
	if err != nil || !reflect.DeepEqual(a.Keys, [][]resource.KeyColumn{key(resource.Text), key(resource.Integer)}) || !slices.Equal(a.Warnings, []string{"slow"}) {
		t.Errorf("addition %+v, %v", a, err)
	}
	if refused := RefuseNewKinds(set, all()); len(refused) > 0 {
		t.Errorf("while no keys are known, %v were refused", refused)
	}
	set.Keys = [][]resource.KeyColumn{key(resource.Text), key(resource.Text)}
	found := all()
	if refused := RefuseNewKinds(set, found); !slices.Equal(refused, []int{1}) || found[0].Err != nil || found[1].Err == nil {
		t.Errorf("refused %v", refused)
	}
	if _, err := Addition(set, found); !errors.Is(err, found[1].Err) {
		t.Errorf("an addition with a resource that does not fit: %v", err)
	}
	found[0].Outcome = Retired(&declared[0])
	if refused := RefuseNewKinds(set, found); len(refused) > 0 || found[0].Err == nil {
		t.Errorf("a retired resource and one that was refused: %v were refused again", refused)
	}
}
