package resource

import (
	"testing"
	"time"
)

func TestSameDefinition(t *testing.T) {
	base := func() *Resource {
		return &Resource{Name: "depts", Key: []string{"deptno"}, Line: 3, Freshness: time.Second, Root: Node{Table: "dept", Line: 4,
			Children: []Child{{Name: "emps", Node: Node{Table: "emp", Line: 5, Order: []Order{{Column: "empno"}}}}}},
			Query: &Query{SQL: "select", Line: 6, Depends: []Depend{{Table: "dept", Line: 7}}}}
	}
	for name, change := range map[string]func(*Resource){
		"lines": func(r *Resource) {
			r.Line, r.Root.Line, r.Root.Children[0].Node.Line, r.Query.Line, r.Query.Depends[0].Line = 0, 0, 0, 0, 0
		},
		"freshness": func(r *Resource) { r.Freshness = time.Minute },
	} {
		other := base()
		change(other)
		if !base().SameDefinition(other) {
			t.Errorf("%s: another definition", name)
		}
	}
	for name, change := range map[string]func(*Resource){
		"name":    func(r *Resource) { r.Name = "d" },
		"key":     func(r *Resource) { r.Key = append(r.Key, "x") },
		"column":  func(r *Resource) { r.Root.Columns = []string{"dname"} },
		"child":   func(r *Resource) { r.Root.Children[0].Name = "e" },
		"order":   func(r *Resource) { r.Root.Children[0].Node.Order[0].Descending = true },
		"promise": func(r *Resource) { r.NoPromise = true },
		"bigint":  func(r *Resource) { r.BigintAsString = true },
		"sql":     func(r *Resource) { r.Query.SQL = "select 1" },
		"depends": func(r *Resource) { r.Query.Depends[0].Via = "select" },
		"itself":  func(r *Resource) { r.Query.Depends[0].ReadsItself = true },
	} {
		other := base()
		change(other)
		if base().SameDefinition(other) {
			t.Errorf("%s: the same definition", name)
		}
	}
	r := base()
	if r.Definition(); r.Line != 3 || r.Root.Children[0].Node.Line != 5 || r.Query.Depends[0].Line != 7 {
		t.Error("Definition has changed the resource")
	}
}
