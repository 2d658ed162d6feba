package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// thriftFiles writes IDL files and a go.mod into a new directory and returns it.
func thriftFiles(t *testing.T) string {
	dir := t.TempDir()
	for name, text := range map[string]string{
		"go.mod":           "// A module.\nmodule \"example.com/shop\" // quoted\n\ngo 1.26.0\n",
		"idl/shop.thrift":  "namespace go shop\ninclude \"types.thrift\"\nstruct Order { 1: types.Item item, 2: i32 n }\n",
		"lib/types.thrift": "namespace go shop.types\nstruct Item { 1: i64 id }\n",
		"bad.thrift":       "struct A {\n  1: Itm item\n  2: i33 n\n}\n",
	} {
		path := filepath.Join(dir, filepath.FromSlash(name))
		if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
			t.Fatal(err)
		}
		blackbox.Write(t, path, text)
	}
	return dir
}

func TestGenThrift(t *testing.T) {
	dir := thriftFiles(t)
	out := filepath.Join(dir, "gen")
	args := []string{"gen", "thrift", "-I", filepath.Join(dir, "lib"), "-o", out, filepath.Join(dir, "idl/shop.thrift")}
	r := blackbox.Expect(t, exitOK, "", "", args...)
	if r.Stdout+r.Stderr != "" {
		t.Errorf("%q %q", r.Stdout, r.Stderr)
	}
	name := filepath.Join(out, "shop/shop_thrift.go")
	text, err := os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{generatedMark, `"example.com/shop/gen/shop/types"`, "Item *types.Item"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing from\n%s", want, text)
		}
	}
	if strings.Contains(string(text), ") Equal(") || strings.Contains(string(text), "thrift.Unknown") || strings.Contains(string(text), "SortedKeys") {
		t.Error("an option is on by default")
	}
	if _, err := os.Stat(filepath.Join(out, "shop/types/types_thrift.go")); err != nil {
		t.Error(err)
	}

	// Unchanged files are not written.
	old := time.Now().Add(-time.Hour)
	if err := os.Chtimes(name, old, old); err != nil {
		t.Fatal(err)
	}
	blackbox.Expect(t, exitOK, "", "", args...)
	if info, err := os.Stat(name); err != nil || time.Since(info.ModTime()) < time.Minute {
		t.Error("the file was written again", err)
	}

	// The options reach the generator.
	blackbox.Expect(t, exitOK, "", "", append(args, "--equal", "--keep-unknown", "--module", "example.com/other")...)
	text, err = os.ReadFile(name)
	if err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{`"example.com/other/shop/types"`, ") Equal(", "unknown thrift.Unknown"} {
		if !strings.Contains(string(text), want) {
			t.Errorf("%s is missing from\n%s", want, text)
		}
	}
}

func TestGenThriftOptions(t *testing.T) {
	dir := t.TempDir()
	file := filepath.Join(dir, "a.thrift")
	blackbox.Write(t, file, "struct A { -5: string s, 1: map<i32, i32> m, 2: i32 n, 3: optional i64 o }\n")
	generated := func(flags ...string) string {
		blackbox.Expect(t, exitOK, "", "", append([]string{"gen", "thrift", "-o", dir, file}, flags...)...)
		text, err := os.ReadFile(filepath.Join(dir, "a", "a_thrift.go"))
		if err != nil {
			t.Fatal(err)
		}
		return string(text)
	}
	for flag, want := range map[string]string{
		"--sorted-keys":  "thrift.SortedKeys(v)",
		"--negative-ids": "thrift.PutText(q, 0, 65531, len(p.S))",
		"--pointers":     "O *int64",
		"--json":         "func (p *A) MarshalJSON() (",
		"--body":         "func (p *A) BodyThrift(body *slipstream.Body) {",
		"--views":        "func (v *AView) N() int32 {",
		"--kitex":        "func (p *A) IsSetO() bool {",
		"--fixed-first":  "p.O.V)\n\t}\n\tb = thrift.Extend(b, 7)",
	} {
		if !strings.Contains(generated(flag), want) || strings.Contains(generated(), want) {
			t.Errorf("%s: %q is missing with the flag, or present without it", flag, want)
		}
	}
	if setter := "func (v *AView) SetN(x int32) {"; !strings.Contains(generated("--views", "--setters"), setter) || strings.Contains(generated("--views"), setter) {
		t.Error("setters are missing with the flag, or present without it")
	}
	blackbox.Expect(t, exitUsage, "", "expected --views", "gen", "thrift", "-o", dir, "--setters", file)
	blackbox.Expect(t, exitUsage, "", "--kitex cannot be combined with --equal", "gen", "thrift", "-o", dir, "--kitex", "--equal", file)
	implicit := filepath.Join(dir, "implicit.thrift")
	blackbox.Write(t, implicit, "struct A { string s, i32 n }\n")
	blackbox.Expect(t, exitOK, "", "s has no ID and gets that of the previous field plus 1", "gen", "thrift", "-o", dir, "--kitex", implicit)
	r := blackbox.Run(t, "gen", "thrift", "-o", dir, file)
	if !strings.HasPrefix(r.Stderr, file+":1:12: warning: the ID -5 of s ") {
		t.Errorf("no warning: %s", r.Stderr)
	}
}

func TestGenThriftMistakes(t *testing.T) {
	dir := thriftFiles(t)
	out := filepath.Join(dir, "gen")
	bad := filepath.Join(dir, "bad.thrift")
	r := blackbox.Expect(t, exitFailure, "", "nothing was written, because of 2 errors", "gen", "thrift", "-o", out, bad)
	if !strings.HasPrefix(r.Stderr, bad+":2:6: unknown type Itm; did you mean i8?\n\t  1: Itm item\n\t     ^\n"+bad+":3:6: unknown type i33") {
		t.Errorf("the errors are\n%s", r.Stderr)
	}
	if _, err := os.Stat(out); err == nil {
		t.Error("something was written")
	}
	blackbox.Expect(t, exitFailure, "", "none.thrift: the file was not found", "gen", "thrift", filepath.Join(dir, "none.thrift"))
	blackbox.Expect(t, exitUsage, "", "requires at least 1 arg", "gen", "thrift")
	blackbox.Expect(t, exitUsage, "", "expected thrift", "gen")

	// Files that were not generated are not replaced, and then nothing else is
	// written.
	mine := filepath.Join(out, "shop/types/types_thrift.go")
	if err := os.MkdirAll(filepath.Dir(mine), 0o755); err != nil {
		t.Fatal(err)
	}
	blackbox.Write(t, mine, "package types\n")
	shop := []string{"gen", "thrift", "-I", filepath.Join(dir, "lib"), "-o", out, filepath.Join(dir, "idl/shop.thrift")}
	blackbox.Expect(t, exitFailure, "", mine+" exists and was not generated", shop...)
	if text, err := os.ReadFile(mine); err != nil || string(text) != "package types\n" {
		t.Errorf("%s %v", text, err)
	}
	if _, err := os.Stat(filepath.Join(out, "shop/shop_thrift.go")); err == nil {
		t.Error("another file was written")
	}

	// The import path of the output is needed, and cannot be found.
	if err := os.Remove(filepath.Join(dir, "go.mod")); err != nil {
		t.Fatal(err)
	}
	blackbox.Expect(t, exitFailure, "", "hint: --module PATH", shop...)
}

func TestModulePath(t *testing.T) {
	for text, want := range map[string]string{
		"module a.b/c\n": "a.b/c", "// x\n\nmodule `a/b` // y\ngo 1.26\n": "a/b", "go 1.26\n": "", "module\n": "", "modules x\n": "",
	} {
		if got := modulePath([]byte(text)); got != want {
			t.Errorf("%q: %q, want %q", text, got, want)
		}
	}
}
