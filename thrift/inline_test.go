package thrift_test

import (
	"os"
	"os/exec"
	"strings"
	"testing"
)

// Functions that generated code calls for each field are inlined. A call for each would make
// writing take 1.2 times as long. The test compiles the test package, because the compiler reports
// nothing about generic functions that are never called.
func TestHotFunctionsAreInlined(t *testing.T) {
	out, err := exec.Command("go", "test", "-c", "-o", os.DevNull, "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	found := make(map[string]bool)
	for line := range strings.Lines(string(out)) {
		if _, name, ok := strings.Cut(strings.TrimSpace(line), "can inline "); ok {
			found[strings.TrimPrefix(name, "thrift.")] = true
		}
	}
	for _, name := range []string{
		"Extend", "Bit", "One", "PutHead", "PutBool", "PutI8", "PutI16", "PutI32", "PutI64", "PutDouble", "PutUUID",
		"PutText", "AppendString[go.shape.string]", "AppendString[go.shape.[]uint8]", "AppendStrings[go.shape.string]", "AppendStringMap",
		"PutList", "PutMap", "AppendBool", "AppendI8", "AppendI16", "AppendI32", "AppendI64", "AppendDouble",
		"PutBools", "PutI8s", "PutFewI16s", "PutFewI32s[go.shape.int32]", "PutFewI64s", "PutFewDoubles", "PutUUIDs",
		"ReadBool", "ReadI8", "ReadI16", "ReadI64", "ReadDouble", "ReadUUID", "AppendCompactBool",
		"(*Reader).Refuses", "(*Reader).CompactEnd",
	} {
		if !found[name] {
			t.Errorf("%s is not inlined", name)
		}
	}
}
