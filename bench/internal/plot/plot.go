// Package plot draws lines over a logarithmic axis as SVG.
package plot

import (
	"fmt"
	"html"
	"io"
	"math"
	"strconv"
	"strings"
)

// A Plot is a picture of lines. X is logarithmic, with a tick at each value that any line has. Both
// coordinates must be positive; other points are omitted.
type Plot struct {
	Title string
	X, Y  string // labels of the axes
	LogY  bool   // if false, the Y axis is linear and begins at 0
	Lines []Line
}

// A Line is drawn through its points, in their order.
type Line struct {
	Name   string
	Colour string // as SVG names colors
	Dashes string // stroke-dasharray; if empty, solid
	Points []Point
}

// A Point is one value.
type Point struct{ X, Y float64 }

// The picture in pixels: the area of the lines with margins around it, and the
// names of the lines right of it.
const (
	width, height       = 860, 440
	left, right         = 74, 200
	top, bottom         = 44, 54
	areaWidth           = width - left - right
	areaHeight          = height - top - bottom
	legendStep          = 20
	fontSize, titleSize = 12, 15
)

// WriteSVG writes the picture, on a white background.
func (p Plot) WriteSVG(w io.Writer) error {
	xs, lowY, highY := p.extent()
	if len(xs) == 0 {
		return fmt.Errorf("plot %q: no point to draw", p.Title)
	}
	lowX, highX := xs[0], xs[len(xs)-1]
	if lowX == highX {
		lowX, highX = lowX/2, highX*2
	}
	yTicks := linearTicks(highY)
	if p.LogY {
		yTicks = decades(lowY, highY)
	}
	lowY, highY = yTicks[0], yTicks[len(yTicks)-1]
	atX := func(x float64) float64 { return left + areaWidth*share(x, lowX, highX, true) }
	atY := func(y float64) float64 { return top + areaHeight*(1-share(y, lowY, highY, p.LogY)) }

	var b strings.Builder
	fmt.Fprintf(&b, `<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 %d %d" width="%d" height="%d" font-family="sans-serif" font-size="%d">`+"\n",
		width, height, width, height, fontSize)
	fmt.Fprintf(&b, `<rect width="%d" height="%d" fill="white"/>`+"\n", width, height)
	text(&b, left, top-20, "start", titleSize, p.Title)
	for _, y := range yTicks {
		fmt.Fprintf(&b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="#ddd"/>`+"\n", left, atY(y), left+areaWidth, atY(y))
		text(&b, left-8, atY(y)+4, "end", fontSize, number(y))
	}
	for _, x := range xs {
		fmt.Fprintf(&b, `<line x1="%.1f" y1="%d" x2="%.1f" y2="%d" stroke="#eee"/>`+"\n", atX(x), top, atX(x), top+areaHeight)
		text(&b, atX(x), top+areaHeight+18, "middle", fontSize, number(x))
	}
	fmt.Fprintf(&b, `<path d="M%d %dV%dH%d" fill="none" stroke="#444"/>`+"\n", left, top, top+areaHeight, left+areaWidth)
	text(&b, left+areaWidth/2, height-14, "middle", fontSize, p.X)
	fmt.Fprintf(&b, `<text transform="translate(16 %d) rotate(-90)" text-anchor="middle" fill="#222">%s</text>`+"\n", top+areaHeight/2, html.EscapeString(p.Y))
	for i, l := range p.Lines {
		l.draw(&b, atX, atY, float64(top+10+i*legendStep))
	}
	b.WriteString("</svg>\n")
	_, err := io.WriteString(w, b.String())
	return err
}

// extent returns the values of X in their order, each once, and the minimum and
// maximum Y.
func (p Plot) extent() (xs []float64, low, high float64) {
	low, high = math.Inf(1), 0
	for _, l := range p.Lines {
		for _, at := range l.drawn() {
			low, high = min(low, at.Y), max(high, at.Y)
			i := 0
			for i < len(xs) && xs[i] < at.X {
				i++
			}
			if i == len(xs) || xs[i] != at.X {
				xs = append(xs[:i], append([]float64{at.X}, xs[i:]...)...)
			}
		}
	}
	return xs, low, high
}

// drawn returns the points that can be drawn.
func (l Line) drawn() (points []Point) {
	for _, at := range l.Points {
		if at.X > 0 && at.Y > 0 && !math.IsInf(at.X, 0) && !math.IsInf(at.Y, 0) {
			points = append(points, at)
		}
	}
	return points
}

// draw draws the line, its points and its name at the height legend.
func (l Line) draw(b *strings.Builder, atX, atY func(float64) float64, legend float64) {
	points := l.drawn()
	if len(points) == 0 {
		return
	}
	dashes := ""
	if l.Dashes != "" {
		dashes = ` stroke-dasharray="` + html.EscapeString(l.Dashes) + `"`
	}
	colour := html.EscapeString(l.Colour)
	fmt.Fprintf(b, `<polyline fill="none" stroke="%s" stroke-width="2"%s points="`, colour, dashes)
	for i, at := range points {
		if i > 0 {
			b.WriteByte(' ')
		}
		fmt.Fprintf(b, "%.1f,%.1f", atX(at.X), atY(at.Y))
	}
	b.WriteString(`"/>` + "\n")
	for _, at := range points {
		fmt.Fprintf(b, `<circle cx="%.1f" cy="%.1f" r="3" fill="%s"><title>%s: %s, %s</title></circle>`+"\n",
			atX(at.X), atY(at.Y), colour, html.EscapeString(l.Name), number(at.X), number(at.Y))
	}
	const begin = left + areaWidth + 14
	fmt.Fprintf(b, `<line x1="%d" y1="%.1f" x2="%d" y2="%.1f" stroke="%s" stroke-width="2"%s/>`+"\n", begin, legend, begin+28, legend, colour, dashes)
	text(b, begin+34, legend+4, "start", fontSize, l.Name)
}

func text(b *strings.Builder, x, y float64, anchor string, size int, s string) {
	fmt.Fprintf(b, `<text x="%.1f" y="%.1f" text-anchor="%s" font-size="%d" fill="#222">%s</text>`+"\n", x, y, anchor, size, html.EscapeString(s))
}

// share returns the position of a value between low (0) and high (1).
func share(v, low, high float64, logarithmic bool) float64 {
	if logarithmic {
		v, low, high = math.Log(v), math.Log(low), math.Log(high)
	}
	return (v - low) / (high - low)
}

// linearTicks returns some round values from 0 up to high or the next round value above it.
func linearTicks(high float64) []float64 {
	step := math.Pow(10, math.Floor(math.Log10(high)))
	for _, finer := range []float64{5, 2} { // at least four steps
		if high/step < 4 {
			step = math.Pow(10, math.Floor(math.Log10(high))) / 10 * finer
		}
	}
	ticks := []float64{0}
	for i := 1.0; ticks[len(ticks)-1] < high; i++ {
		ticks = append(ticks, i*step)
	}
	return ticks
}

// decades returns powers of ten that enclose low and high.
func decades(low, high float64) []float64 {
	first, last := math.Floor(math.Log10(low)), math.Ceil(math.Log10(high))
	if first == last {
		last++
	}
	var ticks []float64
	for e := first; e <= last; e++ {
		ticks = append(ticks, math.Pow(10, e))
	}
	return ticks
}

// number formats a value with thousands separators.
func number(v float64) string {
	s := strconv.FormatFloat(v, 'f', -1, 64)
	if v >= 100 {
		s = strconv.FormatFloat(v, 'f', 0, 64)
	} else if v != math.Trunc(v) {
		s = strconv.FormatFloat(v, 'g', 3, 64)
	}
	for i := len(s) - 3; i > 0 && !strings.Contains(s, "."); i -= 3 {
		s = s[:i] + "," + s[i:]
	}
	return s
}
