package main

import (
	"strings"
	"testing"

	"github.com/google/pprof/profile"
)

func TestPartOf(t *testing.T) {
	for _, tc := range []struct {
		stack string // innermost first
		want  string
	}{
		{"internal/runtime/syscall.Syscall6 syscall.RawSyscall6 syscall.read internal/poll.(*FD).Read net/http.(*connReader).Read", "kernel: read from a socket"},
		{"syscall.write internal/poll.(*FD).Write net.(*conn).Write net/http.checkConnErrorWriter.Write", "kernel: write to a socket"},
		{"runtime.memmove github.com/slipstream-go/slipstream/internal/gateway/frontend/httpfront.(*Service).get net/http.serverHandler.ServeHTTP", "ours: frontend"},
		{"runtime.mallocgc net/http.readRequest", "allocation"},
		{"github.com/maypok86/otter/v2.(*cache).GetIfPresent github.com/slipstream-go/slipstream/internal/gateway/tier/memory.(*Tier).Peek", "ours: cache and memory tier"},
		{"net/textproto.(*Reader).ReadLine net/http.readRequest", "net/http: read a request"},
		{"net/http.Header.writeSubset net/http.(*chunkWriter).writeHeader", "net/http: write an answer"},
		{"runtime.futex runtime.findRunnable runtime.schedule", "scheduler and poller"},
		{"runtime.nobody", otherPart},
		{"", otherPart},
	} {
		if got := partOf(strings.Fields(tc.stack)); got != tc.want {
			t.Errorf("%s is %q, want %q", tc.stack, got, tc.want)
		}
	}
}

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
	got, err := shares(p)
	if err != nil || got["kernel: read from a socket"] != 0.75 || got["allocation"] != 0.25 {
		t.Errorf("%v, %v", got, err)
	}
	var b strings.Builder
	if err := writeShares(&b, got); err != nil || !strings.Contains(b.String(), "| kernel: read from a socket | 75.0 % |\n| allocation | 25.0 % |") {
		t.Errorf("%v\n%s", err, &b)
	}
	if _, err := shares(&profile.Profile{SampleType: p.SampleType}); err == nil {
		t.Error("an empty profile has shares")
	}
}
