package thrift

import (
	"os"
	"path/filepath"
	"testing"

	"github.com/slipstream-go/slipstream/thrift/gen"
)

// TestGopkg compares our Binary protocol with that of gopkg, on which code for Kitex is built: each
// side reads what the other one has written, for random values of all types, with the same bytes.
// The fuzz test compares what both sides skip, and the message headers that both sides read.
//
//	make reference
func TestGopkg(t *testing.T) {
	if os.Getenv("SLIPSTREAM_KITEX") == "" {
		t.Skip("SLIPSTREAM_KITEX is not set: make reference runs this test")
	}
	m := newModule(t, gen.Config{}, sources(t), "gopkg_test.go")
	// The version is that used in the benchmarks.
	const versions = "../../bench/thrift-codec/versions."
	for name, more := range map[string]string{"go.mod": line(t, read(t, versions+"mod"), "github.com/cloudwego/gopkg "), "go.sum": read(t, versions+"sum")} {
		path := filepath.Join(m.dir, name)
		write(t, path, read(t, path)+more)
	}
	m.test(t)
	run(t, m.dir, offline, "go", "test", "-run", "FuzzGopkg$", "-fuzz", "FuzzGopkg$", "-fuzztime", "20s", "./testpkg")
}
