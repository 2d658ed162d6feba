package idl

import (
	"bytes"
	"fmt"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// setFiles returns the files in one folder of testdata. Those in accept cover every feature of the
// language; those in reject contain one mistake each, or several of one kind.
func setFiles(t testing.TB, folder string) []string {
	t.Helper()
	files, err := filepath.Glob(filepath.Join("testdata", folder, "*.thrift"))
	if err != nil || len(files) < 10 {
		t.Fatalf("%d files in %s, %v", len(files), folder, err)
	}
	return files
}

// The golden files show the tree of each file and the warnings.
func TestEveryFeatureIsAccepted(t *testing.T) {
	for _, path := range setFiles(t, "accept") {
		t.Run(filepath.Base(path), func(t *testing.T) {
			p, err := Load(Config{}, path)
			if err != nil {
				t.Fatal(err)
			}
			var got bytes.Buffer
			got.WriteString(print(p.Roots[0]))
			for _, w := range p.Warnings {
				fmt.Fprintf(&got, "\n%s\n", w)
			}
			testkit.Golden(t, "accept/"+strings.TrimSuffix(filepath.Base(path), ".thrift")+".golden", got.Bytes())
		})
	}
}

func TestEveryMistakeIsRejected(t *testing.T) {
	var got bytes.Buffer
	for _, path := range setFiles(t, "reject") {
		p, err := Load(Config{}, path)
		if err == nil || p != nil {
			t.Errorf("%s was accepted", path)
			continue
		}
		fmt.Fprintf(&got, "== %s\n%s\n\n", filepath.Base(path), err)
	}
	testkit.Golden(t, "reject.golden", bytes.ReplaceAll(got.Bytes(), []byte("testdata/reject/"), nil))
}

func TestPrintedFilesStayTheSame(t *testing.T) {
	for _, path := range setFiles(t, "accept") {
		src, err := os.ReadFile(path)
		if err != nil {
			t.Fatal(err)
		}
		checkRoundTrip(t, path, src)
	}
}

func checkRoundTrip(t *testing.T, name string, src []byte) {
	t.Helper()
	f, err := Parse(name, src)
	if err != nil {
		t.Fatal(err)
	}
	once := print(f)
	again, err := Parse(name, []byte(once))
	if err != nil {
		t.Fatalf("the printed file is not accepted: %v\n%s", err, once)
	}
	if twice := print(again); twice != once {
		t.Errorf("%s changes when it is printed again:\n%s\n--- and then\n%s", name, once, twice)
	}
}
