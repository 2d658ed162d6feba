package postgres

import (
	"errors"
	"fmt"
	"slices"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// extend adds resources and waits until the stream follows them.
func (s *streamed) extend(more ...resource.Resource) {
	s.Helper()
	a, err := s.origin.Prepare(s.Context(), more)
	if err != nil {
		s.Fatal(err)
	}
	s.origin.Extend(a)
	s.awaitFollowing()
}

func (s *streamed) awaitFollowing() {
	s.Helper()
	s.stream.Wake()
	testkit.Eventually(s, 10*time.Second, func() error {
		if !s.stream.Follows() {
			return errors.New("the stream does not follow all resources")
		}
		return nil
	})
}

// heard waits until the events since the last call of forget are these, by index
// and ID.
func (s *streamed) heard(want ...string) {
	s.Helper()
	testkit.Eventually(s, 10*time.Second, func() error {
		s.sink.mu.Lock()
		defer s.sink.mu.Unlock()
		var got []string
		for _, e := range s.sink.events {
			id := e.Key.ID
			if e.All {
				id = "*"
			}
			got = append(got, fmt.Sprint(e.Key.Resource, " ", id))
		}
		slices.Sort(got)
		if !slices.Equal(got, want) {
			return fmt.Errorf("events %q, want %q", got, want)
		}
		return nil
	})
	s.sink.forget()
}

func (s *streamed) promised(id cache.ResourceID) string {
	s.sink.mu.Lock()
	defer s.sink.mu.Unlock()
	return s.sink.promises[id]
}

// Added resources are flushed and reported on, the others continue; two of the same name
// both get changes; a retired one does not.
func TestStreamExtends(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.sink.forget()

	other := streamedResource()
	other.Root.Columns = []string{"dname"} // the same triggers, other documents
	s.extend(other)
	s.heard("1 *")
	if a, b := s.promised(0), s.promised(1); a != "" || b != "" {
		t.Errorf("promises %q and %q, want both", a, b)
	}
	s.exec("UPDATE task SET what = 'x' WHERE taskno = 1")
	s.heard("0 1", "1 1")

	// A resource whose triggers are missing has no promise, and does not affect
	// others.
	emps := resource.Resource{Name: "emps", Key: []string{"empno"}, Root: resource.Node{Table: "emp"}}
	s.extend(emps)
	s.heard("2 *")
	if a, b := s.promised(1), s.promised(2); a != "" || b == "" {
		t.Errorf("promises %q and %q, want only the first", a, b)
	}

	s.origin.Retire([]int{0, 2})
	s.awaitFollowing()
	s.sink.forget()
	s.exec("UPDATE task SET what = 'y' WHERE taskno = 1")
	s.heard("1 1")
	if s.promised(0) == "" || s.promised(1) != "" {
		t.Error("the wrong promise was taken away")
	}
	if _, err := s.origin.Load(t.Context(), 0, []string{"1"}); err == nil {
		t.Error("a retired resource was loaded")
	}
	batch, err := s.origin.Load(t.Context(), 1, []string{"1"})
	if err != nil || len(batch.Docs) != 1 || len(batch.Docs[0].Body) == 0 {
		t.Errorf("%+v %v", batch, err)
	}
}

// A resource that does not match the database is refused before anything changes.
func TestPrepareRefuses(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	wrong := resource.Resource{Name: "emps", Key: []string{"empno"}, Line: 7, Root: resource.Node{Table: "emq"}}
	_, err := s.origin.Prepare(t.Context(), []resource.Resource{wrong})
	var problem *origin.SchemaError
	if !errors.As(err, &problem) || problem.Line != 7 || !s.stream.Follows() {
		t.Errorf("Prepare = %v, want a SchemaError of line 7, and no change", err)
	}
}
