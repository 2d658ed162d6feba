package driver

import (
	"reflect"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
)

// numbers returns all numbers of a value.
func numbers(v reflect.Value) (all []reflect.Value) {
	switch v.Kind() {
	case reflect.Struct:
		for i := range v.NumField() {
			all = append(all, numbers(v.Field(i))...)
		}
	case reflect.Array:
		for i := range v.Len() {
			all = append(all, numbers(v.Index(i))...)
		}
	default:
		all = append(all, v)
	}
	return all
}

func TestEveryStatisticIsAdded(t *testing.T) {
	var one, sum slipstream.Stats
	fill := numbers(reflect.ValueOf(&one).Elem())
	for i, v := range fill {
		v.Set(reflect.ValueOf(i + 1).Convert(v.Type()))
	}
	for range 3 {
		AddStats(&sum, &one)
	}
	if sum.RoundTrip != one.RoundTrip || sum.FlushFactor != one.FlushFactor {
		t.Errorf("round trip %v, flush factor %d; expected those of one, %v and %d", sum.RoundTrip, sum.FlushFactor, one.RoundTrip, one.FlushFactor)
	}
	sum.RoundTrip, sum.FlushFactor = 3*one.RoundTrip, 3*one.FlushFactor
	for i, v := range numbers(reflect.ValueOf(&sum).Elem()) {
		if want := reflect.ValueOf(3 * (i + 1)).Convert(v.Type()); !v.Equal(want) {
			t.Errorf("number %d is %v, expected %v", i, v, want)
		}
	}
	if len(fill) < 70 {
		t.Errorf("found only %d numbers", len(fill))
	}
}

// A client that does not know its round trip yet does not hide the round trip of others.
func TestRoundTripOfASum(t *testing.T) {
	for _, c := range []struct{ sum, one, want time.Duration }{{0, 0, 0}, {0, 5, 5}, {5, 0, 5}, {5, 3, 3}, {3, 5, 3}} {
		sum := slipstream.Stats{RoundTrip: c.sum}
		AddStats(&sum, &slipstream.Stats{RoundTrip: c.one})
		if sum.RoundTrip != c.want {
			t.Errorf("%d and %d: %d, expected %d", c.sum, c.one, sum.RoundTrip, c.want)
		}
	}
}
