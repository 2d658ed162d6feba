package sqlite

import (
	"errors"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

func empResource() resource.Resource {
	return resource.Resource{Name: "emps", Key: []string{"empno"}, Root: resource.Node{Table: "emp"}}
}

// extend adds resources to the origin.
func (st *streamTest) extend(more ...resource.Resource) {
	st.Helper()
	a, err := st.origin.Prepare(st.Context(), more)
	if err != nil {
		st.Fatal(err)
	}
	st.origin.Extend(a)
	if st.stream.Follows() {
		st.Error("the stream follows resources that it knows nothing about")
	}
}

// Added resources are reported on and flushed at the next poll; the others continue, and so do
// those that stay when one is retired.
func TestStreamExtends(t *testing.T) {
	journalModes(t, func(t *testing.T, schema []string) {
		st := newStreamTest(t, Config{}, schema...)
		w := newForeignWriter(t, st.path)
		exec := func(sql string) {
			t.Helper()
			if err := w.exec(sql); err != nil {
				t.Fatal(err)
			}
		}
		st.wantPoll("advance")
		st.extend(empResource())
		st.wantPoll("promise true", "promise false", "all 1", "advance") // without triggers
		if !st.stream.Follows() || len(st.origin.KeyColumns(1)) != 1 || st.origin.Shape(1) == nil {
			t.Error("the resource is not followed")
		}
		st.wantPoll("advance")

		// Its triggers change the schema: everything is flushed.
		if _, err := st.origin.Apply(t.Context()); err != nil {
			t.Fatal(err)
		}
		st.wantPoll("promise true", "promise true", "all 1", "all 0", "advance")
		exec("UPDATE emp SET ename = 'X' WHERE empno = 3")
		st.wantPoll("1 3", "0 20", "advance")

		// A third, with the definition of the second, gets the same changes.
		st.extend(empResource())
		exec("UPDATE emp SET ename = 'Y' WHERE empno = 3")
		st.wantPoll("promise true", "promise true", "promise true", "1 3", "2 3", "0 20", "all 2", "advance")

		st.origin.Retire([]int{1})
		st.wantPoll("promise true", "promise false", "promise true", "advance")
		exec("UPDATE emp SET ename = 'Z' WHERE empno = 3")
		st.wantPoll("2 3", "0 20", "advance")
		if _, err := st.origin.Load(t.Context(), 1, []string{"3"}); err == nil {
			t.Error("a retired resource was loaded")
		}
		if _, err := st.origin.Load(t.Context(), 2, []string{"3"}); err != nil {
			t.Error(err)
		}
	})
}

// A resource that does not match the database is refused before anything changes.
func TestPrepareRefuses(t *testing.T) {
	st := newStreamTest(t, Config{}, deptSchema...)
	wrong := empResource()
	wrong.Root.Table, wrong.Line = "emq", 7
	_, err := st.origin.Prepare(t.Context(), []resource.Resource{empResource(), wrong})
	var problem *origin.SchemaError
	if !errors.As(err, &problem) || problem.Line != 7 {
		t.Errorf("Prepare = %v, want a SchemaError of line 7", err)
	}
	if !st.stream.Follows() {
		t.Error("something has changed")
	}
	st.wantPoll("advance")
}
