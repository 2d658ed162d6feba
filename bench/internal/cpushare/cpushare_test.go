package cpushare

import (
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

func TestShares(t *testing.T) {
	location := func(name string) []*profile.Location {
		return []*profile.Location{{Line: []profile.Line{{Function: &profile.Function{Name: name}}}}}
	}
	p := &profile.Profile{
		SampleType: []*profile.ValueType{{Type: "samples"}, {Type: "cpu"}},
		Sample: []*profile.Sample{
			{Location: location("syscall.read"), Value: []int64{1, 30}},
			{Location: location("runtime.mallocgc"), Value: []int64{1, 10}},
		},
	}
	got, err := Runtime.Shares(p)
	if err != nil || got["kernel: read from a socket"] != 0.75 || got["allocation"] != 0.25 {
		t.Errorf("%v, %v", got, err)
	}
	var b strings.Builder
	if err := Write(&b, got); err != nil || !strings.Contains(b.String(), "| kernel: read from a socket | 75.0 % |\n| allocation | 25.0 % |") {
		t.Errorf("%v\n%s", err, &b)
	}
	if _, err := Runtime.Shares(&profile.Profile{SampleType: p.SampleType}); err == nil {
		t.Error("an empty profile has shares")
	}
}
