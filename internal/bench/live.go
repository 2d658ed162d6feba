package bench

import (
	"fmt"
	"io"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// Live is a line on a terminal that is replaced each second of a run. Its
// methods are called one at a time.
type Live struct {
	w      io.Writer
	before load.Progress
	width  int // of the line that is there
}

// NewLive returns a line on w.
func NewLive(w io.Writer) *Live { return &Live{w: w} }

// Show writes what was done since the last call.
func (l *Live) Show(p load.Progress) {
	if p.WarmUp != l.before.WarmUp || p.Elapsed < l.before.Elapsed {
		l.before = load.Progress{WarmUp: p.WarmUp}
	}
	done, over := p.Completed-l.before.Completed, p.Elapsed-l.before.Elapsed
	text := fmt.Sprintf("%4.0f s   %s a second", p.Elapsed.Seconds(), rate(float64(done)/over.Seconds()))
	if done > 0 {
		text += ", " + took((p.Busy-l.before.Busy)/time.Duration(done)) + " each"
	}
	if p.Failed > 0 {
		text += ", " + grouped(p.Failed) + " failed"
	}
	if p.WarmUp {
		text += "   (warm-up)"
	}
	l.before = p
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
