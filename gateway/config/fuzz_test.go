package config

import (
	"errors"
	"os"
	"path/filepath"
	"strings"
	"testing"
)

// FuzzParse: no text makes Parse panic, every mistake has a position, and an
// accepted configuration means the same after it was written and read again, and
// conforms to the JSON Schema.
func FuzzParse(f *testing.F) {
	for _, pattern := range []string{"testdata/good/*.yaml", "testdata/bad/*.yaml"} {
		files, err := filepath.Glob(pattern)
		if err != nil {
			f.Fatal(err)
		}
		for _, file := range files {
			data, err := os.ReadFile(file)
			if err != nil {
				f.Fatal(err)
			}
			f.Add(data)
		}
	}
	schema := readSchema(f)
	f.Fuzz(func(t *testing.T, data []byte) {
		c, err := Parse("fuzz.yaml", data)
		if err != nil {
			all, ok := errors.AsType[*Errors](err)
			if !ok || len(all.List) == 0 {
				t.Fatalf("%T %v; expected *Errors", err, err)
			}
			lines := 1 + strings.Count(string(data), "\n") + strings.Count(string(data), "\r")
			for _, one := range all.List {
				if one.Message == "" || one.Line < 1 || one.Line > lines || one.Column < 1 {
					t.Errorf("an error without a message or place in %d lines: %+v", lines, one)
				}
			}
			return
		}
		sameAgain(t, c)
		if doc, ok := asJSON(t, c.Marshal()); !ok {
			t.Error("what was written is not YAML")
		} else if err := validate(schema, schema, doc, ""); err != nil {
			t.Error(err)
		}
	})
}
