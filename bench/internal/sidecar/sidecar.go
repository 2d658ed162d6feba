// Package sidecar adds to a rival server what the harness needs besides the port under test: a
// second listener that reports the allocations of the process, and a line on standard output that
// names both addresses.
package sidecar

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime"
	"runtime/metrics"
)

// Addresses is the line that a rival prints once it accepts connections.
type Addresses struct {
	Serve   string `json:"serve"`
	Metrics string `json:"metrics"`
}

// Announce starts the second listener and prints the addresses.
func Announce(serving net.Listener) error { return AnnounceAddr(serving.Addr()) }

// AnnounceAddr is Announce for servers without a listener of package net.
//
// The names of the metrics are those of the Prometheus collector for Go processes, so that the
// harness reads rivals and Slipstream in the same way. As with Slipstream, a GET of
// /debug/pprof/heap collects garbage.
func AnnounceAddr(serving net.Addr) error {
	side, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		for _, f := range figures() {
			fmt.Fprintf(w, "%s %d\n", f.name, f.value)
		}
	})
	mux.HandleFunc("GET /debug/pprof/heap", func(http.ResponseWriter, *http.Request) { runtime.GC() })
	// Ends with the process; nothing waits for it.
	go http.Serve(side, mux)
	return json.NewEncoder(os.Stdout).Encode(Addresses{Serve: serving.String(), Metrics: side.Addr().String()})
}

// A figure is one line of the page.
type figure struct {
	name  string
	value uint64
}

// figures reads the runtime's statistics without stopping the world.
func figures() []figure {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/tiny/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"},
		{Name: "/memory/classes/heap/objects:bytes"}, {Name: "/memory/classes/heap/unused:bytes"}, {Name: "/memory/classes/heap/stacks:bytes"},
	}
	metrics.Read(samples)
	value := func(i int) uint64 { return samples[i].Value.Uint64() }
	return []figure{
		{"go_memstats_mallocs_total", value(0) + value(1)},
		{"go_memstats_alloc_bytes_total", value(2)},
		{"go_memstats_heap_alloc_bytes", value(3)},
		{"go_memstats_heap_inuse_bytes", value(3) + value(4)},
		{"go_memstats_stack_inuse_bytes", value(5)},
	}
}

// Fatal prints err and ends the process.
func Fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
