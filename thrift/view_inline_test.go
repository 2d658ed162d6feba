package thrift_test

import (
	"os/exec"
	"strings"
	"testing"
)

// The functions that getters call are inlined, and so are those that the loop of plain calls: a
// single call would move the variables of the loop from registers to memory.
func TestFunctionsOfViewsAreInlined(t *testing.T) {
	out, err := exec.Command("go", "build", "-gcflags=-m", ".").CombinedOutput()
	if err != nil {
		t.Fatalf("%v\n%s", err, out)
	}
	for _, name := range []string{
		"(*View).Bool", "(*View).I8", "(*View).I16", "(*View).I32", "(*View).I64", "(*View).Double", "(*View).UUID",
		"(*View).String", "(*View).Binary", "StringAt", "BinaryAt", "(*ViewStruct).place", "skipStrings", "load64", "load32", "fixedSize",
	} {
		if !strings.Contains(string(out), "can inline "+name+"\n") {
			t.Errorf("%s is not inlined", name)
		}
	}
}
