package plot

import (
	"encoding/xml"
	"errors"
	"io"
	"math"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"testing"
)

// wellFormed fails if text is not XML.
func wellFormed(t *testing.T, text string) {
	t.Helper()
	for d := xml.NewDecoder(strings.NewReader(text)); ; {
		if _, err := d.Token(); errors.Is(err, io.EOF) {
			return
		} else if err != nil {
			t.Fatalf("%v in\n%s", err, text)
		}
	}
}

var coordinate = regexp.MustCompile(`[ML](-?[\d.]+) (-?[\d.]+)`)

// points returns the points of the line of a series.
func points(t *testing.T, svg, class string) (all [][2]float64) {
	t.Helper()
	_, after, ok := strings.Cut(svg, `<g class="`+class+`"><path class="line`)
	if !ok {
		return nil
	}
	line, _, _ := strings.Cut(after, "/>")
	for _, m := range coordinate.FindAllStringSubmatch(line, -1) {
		x, errX := strconv.ParseFloat(m[1], 64)
		y, errY := strconv.ParseFloat(m[2], 64)
		if errX != nil || errY != nil {
			t.Fatal(m)
		}
		all = append(all, [2]float64{x, y})
	}
	return all
}

func TestLinesFollowTheirValues(t *testing.T) {
	p := Plot{
		Label: "a <b> & \"c\"", X: Axis{Title: "x <title>", Zero: true}, Y: Axis{Zero: true},
		Series: []Series{{X: []float64{0, 5, 10}, Y: []float64{0, 5, 10}}, {X: []float64{0, 1, 2}, Y: []float64{10, math.NaN(), 10}, Dashed: true}},
	}
	svg := p.SVG()
	wellFormed(t, svg)
	if want := [][2]float64{{left, height - bottom}, {(left + width - right) / 2, (height - bottom + top) / 2}, {width - right, top}}; !slices.Equal(points(t, svg, "c0"), want) {
		t.Errorf("%v, want %v", points(t, svg, "c0"), want)
	}
	if got := points(t, svg, "c1"); len(got) != 2 || got[0][1] != top || strings.Count(svg, "M") < 2 {
		t.Errorf("%v, want an interrupted line", got)
	}
	for _, bad := range []string{"<b>", `"c"`, "<title>"} {
		if strings.Contains(svg, bad) {
			t.Errorf("%s is not escaped in %s", bad, svg)
		}
	}
	if strings.Count(svg, "<circle") != 3 || strings.Count(svg, "dashed") != 1 {
		t.Errorf("%s", svg)
	}
}

// mutant: plot-logarithm-of-zero
func TestLogarithmsLeaveOutWhatHasNone(t *testing.T) {
	p := Plot{X: Axis{}, Y: Axis{Log: true}, Series: []Series{{X: []float64{1, 2, 3, 4, 5}, Y: []float64{1, 0, -1, 10, 100}}}}
	svg := p.SVG()
	wellFormed(t, svg)
	if got := points(t, svg, "c0"); len(got) != 3 || got[1][1] != (height-bottom+top)/2 || strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
		t.Errorf("%v", got)
	}
}

func TestNothingToDraw(t *testing.T) {
	for _, s := range [][]Series{nil, {{}}, {{X: []float64{1}, Y: []float64{math.NaN()}}}, {{X: []float64{math.Inf(1)}, Y: []float64{1}}}} {
		if svg := (&Plot{Series: s}).SVG(); svg != "" {
			t.Errorf("%v: %s", s, svg)
		}
	}
	for _, y := range []float64{0, 1e-12, 3, 1e12, -5} { // a single value
		for _, axis := range []Axis{{}, {Zero: true}, {Log: true}} {
			svg := (&Plot{Y: axis, Series: []Series{{X: []float64{1}, Y: []float64{y}}}}).SVG()
			wellFormed(t, svg)
			if strings.Contains(svg, "NaN") || strings.Contains(svg, "Inf") {
				t.Errorf("%v: %s", y, svg)
			}
			if got := points(t, svg, "c0"); len(got) > 0 && (got[0][1] < top-0.1 || got[0][1] > height-bottom+0.1) {
				t.Errorf("%v is drawn at %v, which is outside the plot", y, got)
			}
		}
	}
}

func TestTicksAreRound(t *testing.T) {
	for _, tc := range []struct {
		axis   Axis
		values []float64
		want   []string
	}{
		{Axis{Zero: true}, []float64{3, 97}, []string{"0", "20", "40", "60", "80"}},
		{Axis{}, []float64{1000, 1900}, []string{"1000", "1200", "1400", "1600", "1800"}},
		{Axis{Log: true}, []float64{2, 90_000}, []string{"10", "100", "1000", "10000"}},
		{Axis{Log: true}, []float64{9, 60}, []string{"10", "20", "50"}},
		{Axis{Ticks: []Tick{{0, "none"}, {5, "five"}, {500, "far"}}}, []float64{1, 10}, []string{"five"}},
	} {
		s, _ := newScale(&tc.axis, []Series{{Y: tc.values}}, func(s Series) []float64 { return s.Y }, 0, 100)
		var got []string
		for _, tick := range s.ticks() {
			got = append(got, tick.Text)
		}
		if !slices.Equal(got, tc.want) {
			t.Errorf("%v: ticks at %q, want %q", tc.values, got, tc.want)
		}
	}
}

func TestFlameGraphs(t *testing.T) {
	root := &Box{Name: "all", Title: "all 100", Value: 100, Children: []*Box{
		{Name: "main.<a>", Title: `main.<a> "60"`, Value: 60, Change: 0.2, Children: []*Box{{Name: "deep", Title: "deep", Value: 30, Change: -0.03}, {Name: "thin", Title: "thin", Value: 0.01}}},
		{Name: strings.Repeat("long", 100), Title: "long", Value: 40},
	}}
	svg := Flame(root, "<label>", false)
	wellFormed(t, svg)
	for _, want := range []string{
		`viewBox="0 0 1200 54"`, `<title>main.&lt;a&gt; &#34;60&#34;</title><rect x="0" y="18" width="719.5"`, `<rect x="720" y="18" width="479.5"`, `<rect x="0" y="36" width="359.5"`, `..</text>`, ">deep</text>",
	} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if strings.Contains(svg, "thin") {
		t.Error("a box that cannot be seen is drawn")
	}
	svg = Flame(root, "", true)
	wellFormed(t, svg)
	for _, want := range []string{`class="up3"><title>main.`, `class="down2"><title>deep`, `class="same"><title>long`} {
		if !strings.Contains(svg, want) {
			t.Errorf("no %s in\n%s", want, svg)
		}
	}
	if Flame(nil, "", false) != "" || Flame(&Box{}, "", false) != "" {
		t.Error("a flame graph without boxes is not empty")
	}
	many := &Box{Value: 1}
	at := many
	for range 2 * maxBoxes {
		at.Children = []*Box{{Value: 1}}
		at = at.Children[0]
	}
	if n := strings.Count(Flame(many, "", false), "<rect"); n != maxBoxes {
		t.Errorf("%d boxes", n)
	}
}
