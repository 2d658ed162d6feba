package promtext

import (
	"strings"
	"testing"
)

func TestParse(t *testing.T) {
	got, err := Parse(strings.NewReader("# HELP a b\na 1\nb{x=\"y } z\"} 2\nb{x=\"2\"} 3e2 1700000000\n\n"))
	if err != nil || got["a"] != 1 || got["b"] != 302 {
		t.Errorf("%v, %v", got, err)
	}
	for _, bad := range []string{"a\n", "a b\n", "a{x 1\n"} {
		if _, err := Parse(strings.NewReader(bad)); err == nil {
			t.Errorf("%q accepted", bad)
		}
	}
}
