package thrift_test

import (
	"bytes"
	"fmt"
	"math/rand/v2"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/thrift"
)

// alikes holds functions that change line i of an order, for different kinds of similarity.
var alikes = map[string]func(rnd *rand.Rand, i int, line *Order){
	"all the same":        func(*rand.Rand, int, *Order) {},
	"every other one":     func(_ *rand.Rand, i int, line *Order) { line.Price.Set = i%2 == 0 },
	"lengths of strings":  func(rnd *rand.Rand, _ int, line *Order) { line.Name.V = strings.Repeat("n", rnd.IntN(9)) },
	"numbers of elements": func(rnd *rand.Rand, _ int, line *Order) { line.Codes = make([]int64, rnd.IntN(3)) },
	"a change in the middle": func(_ *rand.Rand, i int, line *Order) {
		if i > 20 {
			line.Name.V, line.Payload = "longer", []byte{1}
		}
	},
	"few": func(rnd *rand.Rand, _ int, line *Order) {
		line.Price.Set, line.Quantity.Set, line.Name.V = rnd.IntN(2) == 0, rnd.IntN(2) == 0, randomText(rnd)
	},
}

// alike returns an order of n lines, each changed by change.
func alike(rnd *rand.Rand, n int, change func(rnd *rand.Rand, i int, line *Order)) *Order {
	p := empty()
	for i := range n {
		line := *empty()
		line.ID, line.Name, line.Price = int64(i), thrift.Some("name"), thrift.Some(1.5)
		line.Codes, line.Tags, line.Attrs = []int64{1}, []string{"a", "tag"}, map[string]string{"k": "v"}
		line.States, line.Parent = map[int32][]Status{1: {2}}, &Order{Codes: []int64{5}}
		line.unknown = unknownFields[3]
		change(rnd, i, &line)
		p.Lines = append(p.Lines, line)
	}
	return p
}

func TestViewsOfLinesThatAreAlike(t *testing.T) {
	rnd := rand.New(rand.NewPCG(14, 14))
	for name, change := range alikes {
		for _, n := range []int{15, 16, 17, 20, 40, 200} {
			b := alike(rnd, n, change).AppendThrift(nil)
			if err := new(OrderView).OpenThrift(b); err != nil {
				t.Fatalf("%s, %d lines: %v", name, n, err)
			}
			checkOrderView(t, b)
		}
	}
}

func TestViewsOfDamagedLinesThatAreAlike(t *testing.T) {
	rnd := rand.New(rand.NewPCG(15, 15))
	likely := []byte{0, 1, 2, 3, 8, 10, 11, 12, 13, 14, 15, 16, 0x7f, 0x80, 0xff}
	for name, change := range alikes {
		b := alike(rnd, 40, change).AppendThrift(nil)
		opened := 0
		for i := range 300 {
			d := bytes.Clone(b)
			at := rnd.IntN(len(b))
			switch i % 4 {
			case 0:
				d[at] ^= 1 << rnd.IntN(8)
			case 1:
				d = append(d[:at], b[min(len(b), at+1+rnd.IntN(9)):]...)
			default:
				d[at] = likely[rnd.IntN(len(likely))]
			}
			checkOrderView(t, d)
			checkOrderView(t, d[:rnd.IntN(len(d)+1)])
			opened += thrift.One(new(OrderView).OpenThrift(d) == nil)
		}
		if opened < 30 || opened > 270 {
			t.Errorf("%s: %d of 300 damaged inputs were accepted, want 30 to 270", name, opened)
		}
	}
}

// The path of an error in a line that resembles the previous ones leads to its field.
func TestErrorsOfLinesThatAreAlike(t *testing.T) {
	p := alike(rand.New(rand.NewPCG(16, 16)), 40, alikes["all the same"])
	b := p.AppendThrift(nil)
	p.Lines = p.Lines[:30]
	at := p.SizeThrift() - 10 // of line 30
	if id := b[at+10]; id != 30 {
		t.Fatalf("the offset is in line %d, want 30", id)
	}
	name := at + bytes.Index(b[at:], []byte("\x00\x00\x00\x04name"))
	b[name] = 1
	var v OrderView
	err := v.OpenThrift(b)
	if want := fmt.Sprintf("thrift: field lines[30].name: a length exceeds the input, at byte %d", name); err == nil || err.Error() != want {
		t.Errorf("%v, want %s", err, want)
	}
}

func TestViewsOfManyLinesDoNotAllocate(t *testing.T) {
	for name, change := range alikes {
		b := alike(rand.New(rand.NewPCG(17, 17)), 100, change).AppendThrift(nil)
		if n := testing.AllocsPerRun(10, func() {
			var v OrderView
			if err := v.OpenThrift(b); err != nil {
				t.Fatal(err)
			}
		}); n != 0 {
			t.Errorf("%s: %v allocations", name, n)
		}
	}
}
