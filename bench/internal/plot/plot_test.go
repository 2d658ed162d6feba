package plot

import (
	"encoding/xml"
	"io"
	"math"
	"slices"
	"strings"
	"testing"
)

func TestWriteSVG(t *testing.T) {
	p := Plot{Title: "a < b", X: "connections", Y: "requests/s", Lines: []Line{
		{Name: "ours & theirs", Colour: "#060", Points: []Point{{1, 100}, {4, 400}, {16, math.NaN()}, {64, 0}}},
		{Name: "other", Colour: "#600", Dashes: "4 3", Points: []Point{{4, 50}, {2, 25}}},
		{Name: "nothing", Colour: "#006"},
	}}
	for _, p.LogY = range []bool{false, true} {
		var out strings.Builder
		if err := p.WriteSVG(&out); err != nil {
			t.Fatal(err)
		}
		for decoder := xml.NewDecoder(strings.NewReader(out.String())); ; {
			if _, err := decoder.Token(); err == io.EOF {
				break
			} else if err != nil {
				t.Fatalf("%v in\n%s", err, &out)
			}
		}
		if got := strings.Count(out.String(), "<circle"); got != 4 {
			t.Errorf("%d points, want 4", got)
		}
		if got := strings.Count(out.String(), "<polyline"); got != 2 {
			t.Errorf("%d lines, want 2", got)
		}
		// The highest value of a linear axis that ends with it is at the top, and the
		// lowest X at the left; on a logarithmic one, 400 is below 1,000.
		if got := strings.Contains(out.String(), `points="74.0,44.0`); got {
			t.Error("the lowest point is at the top")
		}
		if got := strings.Contains(out.String(), ` 660.0,44.0"`); got == p.LogY {
			t.Errorf("logarithmic %v, 400 at the top: %v", p.LogY, got)
		}
	}
	if err := (Plot{Lines: []Line{{Points: []Point{{0, 1}}}}}).WriteSVG(io.Discard); err == nil {
		t.Error("a plot without a point was drawn")
	}
}

func TestTicks(t *testing.T) {
	for high, want := range map[float64][]float64{
		400: {0, 100, 200, 300, 400}, 410: {0, 100, 200, 300, 400, 500}, 100: {0, 20, 40, 60, 80, 100}, 250: {0, 50, 100, 150, 200, 250},
	} {
		if got := linearTicks(high); !slices.Equal(got, want) {
			t.Errorf("%v: %v, want %v", high, got, want)
		}
	}
	if got := decades(0.05, 20); len(got) != 5 || got[0] > 0.011 || got[4] < 99 {
		t.Errorf("%v", got)
	}
	if got := decades(10, 10); len(got) != 2 {
		t.Errorf("%v", got)
	}
	for v, want := range map[float64]string{0: "0", 0.293: "0.293", 16384: "16,384", 1000: "1,000", 999: "999", 1234567.8: "1,234,568", 12.345: "12.3"} {
		if got := number(v); got != want {
			t.Errorf("%v: %q, want %q", v, got, want)
		}
	}
}
