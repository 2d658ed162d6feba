package testpkg

import (
	"bytes"
	"encoding/hex"
	"os"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/testpkg/reference"
)

// The files in testdata contain the output of thriftpy2 0.7.1 for this value in both protocols.
// Maps have at most one entry, because their order is unspecified.
func TestEncodingIsThatOfAnotherLibrary(t *testing.T) {
	leaves := make([]reference.Leaf, 17)
	for i := range leaves {
		leaves[i] = reference.Leaf{Number: thrift.Some(int32(i)), Text: "t", Flag: i%2 == 0}
	}
	p := &reference.All{
		ID: -5, B: true, C: -3, D: 3000, E: thrift.Some[int32](7), F: 1.25, G: "text", H: []byte("bin"), S: reference.StatusPaid, Longs: []int64{1, -1, 1 << 40},
		Tags: []string{"x", "y"}, Counts: map[string]int32{"a": 1}, Leaf: &reference.Leaf{Text: "leaf"}, Leaves: leaves, States: map[int32][]reference.Status{4: {0, 5}},
		Bools: [][]bool{{true, false}, {}}, Late: 99, Flag: thrift.Some(false), ByName: map[string]reference.Leaf{"n": {Text: "in map", Flag: true}},
		Maps: []map[string]string{{"k": "v"}, {}}, Pick: &reference.Pick{B: []string{"p"}}, Doubles: []float64{1, -2.5}, Shorts: []int16{-1, 300}, Bytes: []int8{-1, 5},
		Sets: [][]int32{{1}, {2}}, Flags: map[bool]bool{true: false},
	}
	for _, e := range encodings {
		text, err := os.ReadFile("testdata/reference." + e.name + ".hex")
		if err != nil {
			t.Fatal(err)
		}
		want, err := hex.DecodeString(strings.ReplaceAll(string(text), "\n", ""))
		if err != nil {
			t.Fatal(err)
		}
		if got := e.encode(p); !bytes.Equal(got, want) {
			t.Errorf("%s:\n%x, want\n%x", e.name, got, want)
		}
		var back reference.All
		if _, err := e.decode(new(thrift.Reader), want, &back); err != nil || !back.Equal(p) {
			t.Errorf("%s: %v\n%v, want\n%v", e.name, err, &back, p)
		}
	}
}
