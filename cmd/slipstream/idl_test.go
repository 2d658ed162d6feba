package main

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// TestIDL: numbers are written once, into the file that a link leads to, which keeps its mode.
func TestIDL(t *testing.T) {
	file := blackbox.DemoFiles(t)
	text, err := os.ReadFile(file)
	if err != nil {
		t.Fatal(err)
	}
	if r := blackbox.Expect(t, exitOK, "service Slipstream {", "is not served to Thrift clients", "idl", "-c", file); strings.Contains(r.Stdout, "struct Depts {") {
		t.Errorf("fields without numbers are served:\n%s", r.Stdout)
	}
	if after, err := os.ReadFile(file); err != nil || string(after) != string(text) {
		t.Errorf("the file was changed without --assign: %v", err)
	}
	if err := os.Chmod(file, 0o640); err != nil {
		t.Fatal(err)
	}
	link := filepath.Join(filepath.Dir(file), "link.yaml")
	if err := os.Symlink(filepath.Base(file), link); err != nil {
		t.Skip(err) // Windows needs a privilege for it
	}
	first := blackbox.Expect(t, exitOK, "struct Depts {", "", "idl", "-c", link, "--assign")
	if first.Stderr != "" {
		t.Errorf("warnings: %s", first.Stderr)
	}
	numbered, err := os.ReadFile(file)
	if err != nil || !strings.Contains(string(numbered), "deptno: 1") {
		t.Fatalf("%v\n%s", err, numbered)
	}
	if info, err := os.Lstat(file); err != nil || info.Mode().Perm() != 0o640 {
		t.Errorf("%v %v", info.Mode(), err)
	}
	again := blackbox.Expect(t, exitOK, "struct Depts {", "", "idl", "-c", file, "--assign")
	if after, err := os.ReadFile(file); err != nil || string(after) != string(numbered) || again.Stdout != first.Stdout {
		t.Errorf("a second time: %v\n%s\n%s", err, after, again.Stdout)
	}
	if left, err := filepath.Glob(filepath.Join(filepath.Dir(file), ".*")); err != nil || len(left) > 0 {
		t.Errorf("files are left: %q %v", left, err)
	}
}

func TestIDLFailures(t *testing.T) {
	blackbox.Expect(t, exitUsage, "", "try: slipstream demo", "idl")
	blackbox.Expect(t, exitUsage, "", "slipstream idl --help says more", "idl", "depts")
	blackbox.Expect(t, exitUnreachable, "", "shop.db", "idl", "--assign", "-c", blackbox.WriteFile(t, "none.yaml", minimal))
	blackbox.Expect(t, exitUsage, "", "unknown field", "idl", "-c", blackbox.WriteFile(t, "bad.yaml", minimal+"freshnes: 1s\n"))
}
