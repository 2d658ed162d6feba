package measure

import (
	"testing"
	"time"
)

func TestRation(t *testing.T) {
	var r Ration
	for _, c := range []struct {
		at      time.Duration
		leftOut int64
		ok      bool
	}{
		{5 * time.Second, 0, true},
		{5*time.Second + time.Millisecond, 0, false},
		{6*time.Second - 1, 0, false},
		{6 * time.Second, 2, true},
		{8 * time.Second, 0, true},
	} {
		if leftOut, ok := r.Take(c.at); leftOut != c.leftOut || ok != c.ok {
			t.Errorf("Take(%v) is %d, %v, want %d, %v", c.at, leftOut, ok, c.leftOut, c.ok)
		}
	}
}
