package profiles

import (
	"context"
	"errors"
	"fmt"
	"time"
)

const (
	// MinWindow is the minimum length of a window in which profiles are taken.
	MinWindow = 3 * time.Second
	// maxCPU is the maximum length of a CPU profile: longer ones provide no new information, and
	// many servers refuse them.
	maxCPU = 30 * time.Second
	// margin is the part of a window reserved for everything except the CPU profile.
	margin = 2500 * time.Millisecond
	// traced is the length of a trace, which grows by megabytes each second.
	traced = 500 * time.Millisecond
)

// A kind is one of the profiles of net/http/pprof.
type kind struct {
	name  string // of the handler
	file  string
	since bool // it counts since the start of the process, so the difference is stored
}

const (
	cpuProfile = "profile"
	traceOf    = "trace"
)

// kinds are the profiles in the order in which they are shown.
var kinds = []kind{
	{name: cpuProfile, file: "cpu.pprof"},
	{name: "allocs", file: "allocs.pprof", since: true},
	{name: "heap", file: "heap.pprof"},
	{name: "mutex", file: "mutex.pprof", since: true},
	{name: "block", file: "block.pprof", since: true},
	{name: "goroutine", file: "goroutine.pprof"},
	{name: "threadcreate", file: "threadcreate.pprof"},
	{name: traceOf, file: "trace.out"},
}

// A Recording holds the profiles that Take has fetched.
type Recording struct {
	source *Source
	// By the name of the kind: what was fetched, or why it was not, and when.
	before, after map[string]answer
	cpu           time.Duration // the requested length of the CPU profile
}

type answer struct {
	data []byte
	at   time.Time
	err  error
}

// Take fetches all profiles within a window that begins now. Those that have not arrived when ctx
// ends are missing.
func (s *Source) Take(ctx context.Context, window time.Duration) *Recording {
	defer s.client.CloseIdleConnections()
	r := &Recording{source: s, before: map[string]answer{}, after: map[string]answer{}}
	fetch := func(into map[string]answer, name, query string, most int64) {
		data, err := s.get(ctx, name+query, most)
		if err != nil && ctx.Err() != nil {
			err = errors.New("the window ended before it was available")
		}
		into[name] = answer{data, time.Now(), err}
	}
	for _, k := range kinds {
		if k.since {
			fetch(r.before, k.name, "", maxProfile)
		}
	}
	r.cpu = max(min(window-margin, maxCPU).Truncate(time.Second), time.Second)
	fetch(r.after, cpuProfile, fmt.Sprintf("?seconds=%d", int(r.cpu.Seconds())), maxProfile)
	for _, k := range kinds {
		if k.name != cpuProfile && k.name != traceOf {
			fetch(r.after, k.name, "", maxProfile)
		}
	}
	fetch(r.after, traceOf, fmt.Sprintf("?seconds=%g", traced.Seconds()), maxTrace)
	return r
}
