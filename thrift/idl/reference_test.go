package idl

import (
	"context"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"testing"
	"time"
)

// judgment is the first line of a file for which the result of the reference compiler differs, in
// all versions or in one.
var judgment = regexp.MustCompile(`^# reference( [\d.]+)?: (accepts|rejects|crashes|hangs)\b`)

// TestReferenceCompilerAgrees runs the compiler of Apache Thrift on the same files:
//
//	make reference
//
// If its result for a file differs, the first line of the file says so and gives the reason.
func TestReferenceCompilerAgrees(t *testing.T) {
	program := os.Getenv("SLIPSTREAM_THRIFT")
	if program == "" {
		t.Skip("SLIPSTREAM_THRIFT is not set to the path of a Thrift compiler; make reference runs this test")
	}
	out, err := exec.Command(program, "--version").Output()
	if err != nil {
		t.Fatal(err)
	}
	version := strings.TrimPrefix(strings.TrimSpace(string(out)), "Thrift version ")
	t.Logf("compiler %s", version)
	for folder, ours := range map[string]string{"accept": "accepts", "reject": "rejects"} {
		for _, path := range setFiles(t, folder) {
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			expected := ours
			if m := judgment.FindSubmatch(src); m != nil && (len(m[1]) == 0 || strings.HasPrefix(version, strings.TrimSpace(string(m[1]))+".")) {
				expected = string(m[2])
			}
			if expected == "crashes" || expected == "hangs" {
				continue
			}
			if got, said := judge(t, program, path); got != expected {
				t.Errorf("%s: the reference compiler %s it; according to the file, it %s it\n%s", path, got, expected, said)
			}
		}
	}
}

// judge returns "accepts" or "rejects", and the output of the compiler.
func judge(t *testing.T, program, path string) (verdict, said string) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 20*time.Second)
	defer cancel()
	// Some checks of the compiler run only when code is generated.
	cmd := exec.CommandContext(ctx, program, "-r", "--gen", "json", "-out", t.TempDir(), filepath.Base(path))
	cmd.Dir = filepath.Dir(path)
	out, err := cmd.CombinedOutput()
	if ctx.Err() != nil {
		t.Fatalf("%s: the compiler does not end", path)
	}
	if err != nil {
		return "rejects", string(out)
	}
	return "accepts", string(out)
}

// A typo in the first line of a file would change the expected result.
func TestJudgmentsAreRead(t *testing.T) {
	marked := 0
	for _, folder := range []string{"accept", "reject"} {
		for _, path := range setFiles(t, folder) {
			src, err := os.ReadFile(path)
			if err != nil {
				t.Fatal(err)
			}
			line, _, _ := strings.Cut(string(src), "\n")
			if !strings.Contains(line, "reference") {
				continue
			}
			marked++
			if m := judgment.FindStringSubmatch(line); m == nil || !strings.Contains(line, ",") && m[2] != "crashes" {
				t.Errorf("%s: %q does not state the result of the reference compiler and the reason", path, line)
			}
		}
	}
	if marked < 10 {
		t.Errorf("only %d files state a different result of the reference compiler", marked)
	}
}
