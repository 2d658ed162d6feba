package loop

import (
	"testing"
	"time"
)

// TestPanicLog: of many panics, only a few are logged per second, and the others are counted.
func TestPanicLog(t *testing.T) {
	var p panicLog
	for i := range 3 {
		taken, told := 0, int64(0)
		for n := range 1000 {
			leftOut, ok := p.take(time.Duration(i)*time.Second + time.Duration(n)*time.Millisecond)
			if ok {
				taken++
			}
			told += leftOut
		}
		want := int64(0)
		if i > 0 {
			want = 1000 - panicLines
		}
		if taken != panicLines || told != want {
			t.Errorf("second %d: %d lines that report %d more; want %d and %d", i, taken, told, panicLines, want)
		}
	}
}
