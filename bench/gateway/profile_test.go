package main

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/cpushare"
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
		{"runtime.nobody", cpushare.Other},
		{"", cpushare.Other},
	} {
		if got := parts.Of(strings.Fields(tc.stack)); got != tc.want {
			t.Errorf("%s is %q, want %q", tc.stack, got, tc.want)
		}
	}
}
