package suggest

import (
	"slices"
	"strings"
	"testing"
)

func TestNearest(t *testing.T) {
	for _, c := range []struct{ word, known, want string }{
		{"relaod", "verify reload stale", "reload"},
		{"hs384", "HS256 HS384", "HS384"},
		{"Dept", "emp dept", "dept"},
		{"warning", "debug warn", "warn"},
		{"freshness_ms", "resources freshness", "freshness"},
		{"name", "id dname", "dname"},
		{"id", "key origin", ""},
		{"customers", "orders products", ""},
		{"x", "", ""},
		{strings.Repeat("x", 1000), strings.Repeat("x", 50) + "y", ""},
	} {
		if got := Nearest(c.word, strings.Fields(c.known)); got != c.want {
			t.Errorf("%q of %q: got %q, want %q", c.word, c.known, got, c.want)
		}
	}
}

func TestSorted(t *testing.T) {
	known := []string{"boss", "deptno", "Dept", "emp"}
	if got := Sorted("dept", known); !slices.Equal(got, []string{"Dept", "deptno", "emp", "boss"}) || known[0] != "boss" {
		t.Errorf("got %q of %q", got, known)
	}
}
