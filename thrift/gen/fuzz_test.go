package gen

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift/idl"
)

// FuzzGenerate checks for every program that Generate returns without a panic, that its errors
// refer to the program, and that its output is formatted and compiles.
func FuzzGenerate(f *testing.F) {
	const kitex = 1024
	importOthers(f) // It may take long, and an input must not take more than 10 seconds.
	for _, pattern := range []string{"testdata/idl/*.thrift", "testdata/idl/lib/*.thrift", "../idl/testdata/accept/*.thrift"} {
		names, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, name := range names {
			src, err := os.ReadFile(name)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(src, uint16(len(src)))
			f.Add(src, uint16(kitex))
		}
	}
	f.Fuzz(func(t *testing.T, src []byte, options uint16) {
		if len(src) > 1<<13 {
			return
		}
		p, err := idl.Load(idl.Config{NegativeIDs: options&1 != 0, ReadFile: func(path string) ([]byte, error) {
			switch {
			case path == "a.thrift":
				return src, nil
			case strings.HasSuffix(path, "shared.thrift"):
				return os.ReadFile("testdata/idl/lib/shared.thrift")
			}
			return nil, fs.ErrNotExist
		}}, "a.thrift")
		if err != nil {
			return
		}
		c := Config{Module: "example.com/generated", Equal: options&2 != 0, KeepUnknown: options&4 != 0, SortedKeys: options&8 != 0, FixedFirst: options&16 != 0,
			Body: options&32 != 0, JSON: options&64 != 0, Pointers: options&128 != 0, Views: options&256 != 0, Setters: options&512 != 0}
		if options&kitex != 0 {
			c.Kitex, c.Equal, c.Views, c.Setters = true, false, false, false
		}
		files, err := Generate(c, p)
		if err != nil {
			if _, ok := errors.AsType[idl.ErrorList](err); !ok {
				t.Fatal(err)
			}
			return
		}
		for _, file := range files {
			if !fs.ValidPath(file.Name) {
				t.Fatalf("%q is not a file below the output directory", file.Name)
			}
			checkFormat(t, file)
		}
		for _, err := range typeErrors(c.Module, files) {
			t.Error(err)
		}
	})
}
