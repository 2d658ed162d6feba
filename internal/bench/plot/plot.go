// Package plot draws lines over two axes, and stacks of functions, as SVG for embedding in a page.
// The page defines the colors: drawings have only classes. Texts are escaped here.
package plot

import (
	"fmt"
	"html"
	"math"
	"strconv"
	"strings"
	"unicode"
)

// The size of a plot, in units that are pixels if it is not scaled. It is about as wide as a phone,
// so that its texts are readable there.
const (
	width, height            = 400, 230
	left, right, top, bottom = 60, 10, 8, 38
	// lastTick is the distance from the right edge within which the label of a tick does not fit.
	lastTick = 15
	// manyPoints is the number of points from which a series is drawn without dots.
	manyPoints = 40
)

// A Plot is a set of series over two axes.
type Plot struct {
	Label  string // a description of the plot for people who cannot see it
	X, Y   Axis
	Series []Series
	Shade  Range // a part of X that is drawn shaded; if empty, there is none
}

// A Range is a part of an axis.
type Range struct{ From, To float64 }

// An Axis is one direction of a plot.
type Axis struct {
	Title string
	Log   bool // values that are not positive are left out
	// Zero means that the axis includes 0. It has no effect with Log.
	Zero   bool
	Format func(float64) string // formats the values at ticks; if nil, as few digits as possible are used
	Ticks  []Tick               // if nil, they are chosen
}

// A Tick is a marked value of an axis.
type Tick struct {
	At   float64
	Text string
}

// A Series is a line. NaN in Y interrupts it.
type Series struct {
	X, Y   []float64
	Dashed bool
}

// scale maps the values of an axis to units of the plot.
type scale struct {
	axis     *Axis
	lo, hi   float64 // logarithms, if the axis is logarithmic
	from, to float64 // units
}

// place returns the position of a value, and whether it can be drawn.
func (s *scale) place(v float64) (float64, bool) {
	if s.axis.Log {
		v = math.Log10(v) // NaN for negative values
	}
	if math.IsNaN(v) || math.IsInf(v, 0) {
		return 0, false
	}
	return s.from + (v-s.lo)/(s.hi-s.lo)*(s.to-s.from), true
}

// newScale returns the scale of an axis that covers all values. ok is false if there are none.
func newScale(axis *Axis, series []Series, of func(Series) []float64, from, to float64) (s scale, ok bool) {
	s = scale{axis: axis, lo: math.Inf(1), hi: math.Inf(-1), from: from, to: to}
	for _, one := range series {
		for _, v := range of(one) {
			if axis.Log {
				v = math.Log10(v)
			}
			if !math.IsNaN(v) && !math.IsInf(v, 0) {
				s.lo, s.hi, ok = min(s.lo, v), max(s.hi, v), true
			}
		}
	}
	if !ok {
		return s, false
	}
	if axis.Zero && !axis.Log {
		s.lo, s.hi = min(s.lo, 0), max(s.hi, 0)
	}
	if s.hi-s.lo < 1e-9*max(math.Abs(s.hi), 1e-3) { // a single value
		wider := max(math.Abs(s.hi)/2, 0.5)
		s.lo, s.hi = s.lo-wider, s.hi+wider
		if axis.Zero && !axis.Log {
			s.lo = 0
		}
	}
	return s, true
}

// SVG returns the plot as an svg element, or an empty string if there is nothing to draw.
func (p *Plot) SVG() string {
	x, hasX := newScale(&p.X, p.Series, func(s Series) []float64 { return s.X }, left, width-right)
	y, hasY := newScale(&p.Y, p.Series, func(s Series) []float64 { return s.Y }, height-bottom, top)
	if !hasX || !hasY {
		return ""
	}
	var b strings.Builder
	fmt.Fprintf(&b, `<svg class="plot" viewBox="0 0 %d %d" role="img" aria-label="%s">`, width, height, escape(p.Label))
	p.Shade.draw(&b, &x)
	for _, tick := range y.ticks() {
		at, _ := y.place(tick.At)
		fmt.Fprintf(&b, `<path class="grid" d="M%d %sH%d"/><text class="y" x="%d" y="%s">%s</text>`,
			left, number(at), width-right, left-5, number(at+4), escape(tick.Text))
	}
	for _, tick := range x.ticks() {
		at, _ := x.place(tick.At)
		class, text := "x", at
		if at > width-right-lastTick { // it would extend beyond the edge
			class, text = "x last", width-1
		}
		fmt.Fprintf(&b, `<path class="grid" d="M%s %dV%d"/><text class="%s" x="%s" y="%d">%s</text>`,
			number(at), top, height-bottom, class, number(text), height-bottom+16, escape(tick.Text))
	}
	fmt.Fprintf(&b, `<text class="x title" x="%d" y="%d">%s</text>`, (left+width-right)/2, height-4, escape(p.X.Title))
	for i, s := range p.Series {
		s.draw(&b, i, &x, &y)
	}
	b.WriteString("</svg>")
	return b.String()
}

// draw writes a box of the full height.
func (r Range) draw(b *strings.Builder, x *scale) {
	from, okFrom := x.place(r.From)
	to, okTo := x.place(r.To)
	from, to = max(from, left), min(to, width-right)
	if okFrom && okTo && from < to {
		fmt.Fprintf(b, `<rect class="shade" x="%s" y="%d" width="%s" height="%d"/>`, number(from), top, number(to-from), height-bottom-top)
	}
}

// draw writes the line of a series, whose class is c followed by its number.
func (s Series) draw(b *strings.Builder, i int, x, y *scale) {
	var line, dots strings.Builder
	points, pen := 0, "M"
	for k := range min(len(s.X), len(s.Y)) {
		px, okX := x.place(s.X[k])
		py, okY := y.place(s.Y[k])
		if !okX || !okY {
			pen = "M"
			continue
		}
		line.WriteString(pen + number(px) + " " + number(py))
		fmt.Fprintf(&dots, `<circle cx="%s" cy="%s" r="2"/>`, number(px), number(py))
		points, pen = points+1, "L"
	}
	if points == 0 {
		return
	}
	dashed := ""
	if s.Dashed {
		dashed = " dashed"
	}
	fmt.Fprintf(b, `<g class="c%d"><path class="line%s" d="%s"/>`, i, dashed, line.String())
	if points < manyPoints && !s.Dashed {
		b.WriteString(dots.String())
	}
	b.WriteString("</g>")
}

// ticks returns the ticks within the range of the axis.
func (s *scale) ticks() []Tick {
	all := s.axis.Ticks
	if all == nil {
		all = s.chosen()
	}
	var within []Tick
	for _, t := range all {
		v := t.At
		if s.axis.Log {
			v = math.Log10(v)
		}
		if slack := 1e-6 * (s.hi - s.lo); v >= s.lo-slack && v <= s.hi+slack {
			within = append(within, t)
		}
	}
	return within
}

// chosen returns round values.
func (s *scale) chosen() (ticks []Tick) {
	format := s.axis.Format
	if format == nil {
		format = func(v float64) string { return strconv.FormatFloat(v, 'g', 6, 64) }
	}
	if s.axis.Log && s.hi-s.lo > 0.7 {
		mantissas := []float64{1}
		if s.hi-s.lo < 2.5 {
			mantissas = []float64{1, 2, 5}
		}
		every := 1 + int(s.hi-s.lo)/7
		for e := int(math.Floor(s.lo)); e <= int(math.Ceil(s.hi)); e += every {
			for _, m := range mantissas {
				v := m * math.Pow10(e)
				ticks = append(ticks, Tick{v, format(v)})
			}
		}
		return ticks
	}
	lo, hi := s.lo, s.hi
	if s.axis.Log {
		lo, hi = math.Pow(10, lo), math.Pow(10, hi)
	}
	step := roundStep((hi - lo) / 4)
	for k := math.Ceil(lo/step - 1e-9); k*step <= hi+1e-9*step && len(ticks) < 20; k++ {
		at := k * step
		if at == 0 {
			at = 0 // not negative zero
		}
		ticks = append(ticks, Tick{at, format(at)})
	}
	return ticks
}

// roundStep returns 1, 2 or 5 times a power of ten that is approximately v or larger.
func roundStep(v float64) float64 {
	power := math.Pow(10, math.Floor(math.Log10(v)))
	for _, m := range []float64{1, 2, 5} {
		if m*power >= 0.8*v {
			return m * power
		}
	}
	return 10 * power
}

// Text returns a text with a replacement for each control character, because pages must not contain
// any.
func Text(text string) string {
	return strings.Map(func(r rune) rune {
		if unicode.IsControl(r) {
			return '\uFFFD'
		}
		return r
	}, strings.ToValidUTF8(text, "\uFFFD"))
}

func escape(text string) string { return html.EscapeString(Text(text)) }

// number formats a coordinate.
func number(v float64) string { return strconv.FormatFloat(math.Round(v*10)/10, 'f', -1, 64) }
