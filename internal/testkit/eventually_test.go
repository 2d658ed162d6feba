package testkit

import "testing"

func TestBusyMachine(t *testing.T) {
	before := parseProcessorTime("cpu  100 10 50 1000 20 0 5 15 0 0")
	if want := (processorTimes{idle: 1020, all: 1200}); before != want {
		t.Fatalf("%+v, want %+v", before, want)
	}
	for line, busy := range map[string]bool{
		"cpu  180 10 60 1005 20 0 10 15 0 0": true,
		"cpu  180 10 50 1030 20 0 5 15 0 0":  false,
		"cpu  100 10 50 1000 20 0 5 15 0 0":  false,
		"cpu  100 10":                        false,
		"":                                   false,
	} {
		if got := parseProcessorTime(line).busySince(before); got != busy {
			t.Errorf("after %q: busy %t, want %t", line, got, busy)
		}
	}
}
