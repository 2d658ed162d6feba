package origin

import (
	"reflect"
	"testing"
	"time"
)

// A value on a bound belongs to the bucket below it, and values above all bounds count, too.
func TestCounter(t *testing.T) {
	bounds := []time.Duration{10, 20}
	c := NewCounter(bounds)
	for _, d := range []time.Duration{9, 10, 11, 20, 50, 21} {
		c.Add(d)
	}
	want := Histogram{Bounds: bounds, Counts: []uint64{2, 2, 2}, Sum: 121, Max: 50}
	if got := c.Read(); !reflect.DeepEqual(got, want) {
		t.Errorf("got %+v, want %+v", got, want)
	}
}
