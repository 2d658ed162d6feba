package plot

import (
	"fmt"
	"hash/fnv"
	"strings"
)

// A Box is a function in a stack, drawn above the functions that it calls. Its children together
// are not wider than it is.
type Box struct {
	Name     string
	Title    string // shown when a reader points at the box
	Value    float64
	Change   float64 // of its share compared with another profile, from -1 to 1; for Difference
	Children []*Box
}

const (
	flameWidth = 1200
	flameRow   = 18
	// letter is the approximate width of a letter.
	letter = 6.6
	// maxBoxes bounds the number of boxes of a flame graph, and thinnest is the minimum width of a
	// box.
	maxBoxes = 20_000
	thinnest = 0.5
	// flameColors is the number of color classes f0, f1, ...
	flameColors = 6
)

// Flame returns a flame graph as an svg element: the width of boxes is their value, and callers are
// above the functions they call. If difference is true, the classes of boxes show how their share
// has changed: up1 to up3 and down1 to down3. It is empty if there is nothing to draw.
func Flame(root *Box, label string, difference bool) string {
	if root == nil || root.Value <= 0 {
		return ""
	}
	f := flame{difference: difference, scale: flameWidth / root.Value}
	f.draw(root, 0, 0)
	return fmt.Sprintf(`<svg class="flame" viewBox="0 0 %d %d" role="img" aria-label="%s">%s</svg>`, flameWidth, (f.depth+1)*flameRow, escape(label), f.b.String())
}

// A flame is a flame graph that is being drawn.
type flame struct {
	b          strings.Builder
	difference bool
	scale      float64
	boxes      int
	depth      int
}

func (f *flame) draw(box *Box, x float64, depth int) {
	wide := box.Value * f.scale
	if wide < thinnest || f.boxes >= maxBoxes {
		return
	}
	f.boxes++
	f.depth = max(f.depth, depth)
	y := depth * flameRow
	fmt.Fprintf(&f.b, `<g class="%s"><title>%s</title><rect x="%s" y="%d" width="%s" height="%d"/>`,
		f.class(box), escape(box.Title), number(x), y, number(max(wide-0.5, 0.1)), flameRow-1)
	if letters := int((wide - 6) / letter); letters >= 3 {
		fmt.Fprintf(&f.b, `<text x="%s" y="%d">%s</text>`, number(x+3), y+13, escape(cut(box.Name, letters)))
	}
	f.b.WriteString("</g>")
	for _, c := range box.Children {
		f.draw(c, x, depth+1)
		x += c.Value * f.scale
	}
}

// class returns the color class of a box.
func (f *flame) class(box *Box) string {
	if !f.difference {
		hash := fnv.New32a()
		_, _ = hash.Write([]byte(box.Name)) // never fails
		return fmt.Sprintf("f%d", hash.Sum32()%flameColors)
	}
	way, change := "up", box.Change
	if change < 0 {
		way, change = "down", -change
	}
	switch {
	case change < 0.002:
		return "same"
	case change < 0.01:
		return way + "1"
	case change < 0.05:
		return way + "2"
	}
	return way + "3"
}

// cut shortens a text to the given number of letters.
func cut(text string, letters int) string {
	runes := []rune(text)
	if len(runes) <= letters {
		return text
	}
	return string(runes[:letters-2]) + ".."
}
