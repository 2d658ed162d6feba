package rpc_test

import (
	"bytes"
	"os/exec"
	"path/filepath"
	"testing"
)

// A program without streams does not contain the code for them.
func TestProgramsWithoutStreams(t *testing.T) {
	program := filepath.Join(t.TempDir(), "catalog.exe")
	run := func(args ...string) []byte {
		t.Helper()
		out, err := exec.CommandContext(t.Context(), "go", args...).CombinedOutput()
		if err != nil {
			t.Fatalf("go %v: %v\n%s", args, err, out)
		}
		return out
	}
	run("build", "-o", program, "../../examples/catalog")
	names := run("tool", "nm", program)
	if !bytes.Contains(names, []byte("thrift/rpc.(*session).Data")) {
		t.Error("the program does not contain a server")
	}
	for _, name := range []string{"rpc.(*streamConn)", "rpc.(*serverStream)", "rpc.(*StreamClient)", "rpc.(*ClientStream)"} {
		if bytes.Contains(names, []byte("thrift/"+name)) {
			t.Errorf("the program contains %s", name)
		}
	}
}
