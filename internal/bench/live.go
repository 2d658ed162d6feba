package bench

import (
	"fmt"
	"io"
	"strings"

	"github.com/slipstream-go/slipstream/internal/load"
)

// Live is a line on a terminal that is replaced each second of a run. Its
// methods are called one at a time.
type Live struct {
	w      io.Writer
	warmUp bool
	failed uint64 // in the phase
	width  int    // of the current line
}

// NewLive returns a line on w.
func NewLive(w io.Writer) *Live { return &Live{w: w} }

// Show replaces the line with what was done in an interval.
func (l *Live) Show(i load.Interval) {
	if i.WarmUp != l.warmUp || i.Start == 0 {
		l.failed = 0
	}
	l.warmUp = i.WarmUp
	l.failed += i.Errors
	text := fmt.Sprintf("%4.0f s   %s a second", (i.Start + i.Width).Seconds(), rate(float64(i.Completed)/i.Width.Seconds()))
	if i.Completed > 0 {
		text += ", p50 " + took(i.P50) + ", p99 " + took(i.P99)
	}
	if l.failed > 0 {
		text += ", " + grouped(l.failed) + " failed"
	}
	text += ", CPU " + three(i.Client.Seconds()/i.Width.Seconds())
	if len(i.Counters) > 0 {
		server := 0.0
		for _, ns := range i.Counters {
			server += ns / 1e9
		}
		text += " + " + three(server/i.Width.Seconds())
	}
	if i.WarmUp {
		text += "   (warm-up)"
	}
	l.replace(text)
}

// Clear removes the line.
func (l *Live) Clear() {
	if l.width > 0 {
		l.replace("")
		fmt.Fprint(l.w, "\r")
	}
}

func (l *Live) replace(text string) {
	fmt.Fprintf(l.w, "\r%s%s", text, strings.Repeat(" ", max(l.width-len(text), 0)))
	l.width = len(text)
}
