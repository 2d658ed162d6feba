package thrift

import (
	"testing"

	"github.com/slipstream-go/slipstream/thrift/gen"
)

// The Go library of Apache Thrift reads what we write, and vice versa, for random values of all
// types. The bytes are equal.
func TestApacheLibrary(t *testing.T) {
	if testing.Short() {
		t.Skip("builds a module")
	}
	t.Run("no options", func(t *testing.T) { newModule(t, gen.Config{}, sources(t), "apache_test.go").test(t) })
	t.Run("options", func(t *testing.T) {
		c := gen.Config{Pointers: true, SortedKeys: true, FixedFirst: true, KeepUnknown: true}
		newModule(t, c, sources(t), "apache_test.go").test(t, "FIXED_FIRST=1")
	})
}
