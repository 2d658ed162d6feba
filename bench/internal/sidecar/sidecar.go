// Package sidecar gives a rival server what the harness needs beside the port
// under test: a second listener that tells what the process has allocated, and
// a line on standard output that names both addresses.
package sidecar

import (
	"encoding/json"
	"fmt"
	"net"
	"net/http"
	"os"
	"runtime/metrics"
)

// Addresses is the line that a rival prints once it accepts connections.
type Addresses struct {
	Serve   string `json:"serve"`
	Metrics string `json:"metrics"`
}

// Announce starts the second listener and prints the addresses. The names of
// the figures are those of the Prometheus collector for Go processes, so that
// the harness reads rivals and Slipstream in one way.
func Announce(serving net.Listener) error {
	side, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.HandleFunc("GET /metrics", func(w http.ResponseWriter, _ *http.Request) {
		objects, bytes := allocated()
		fmt.Fprintf(w, "go_memstats_mallocs_total %d\ngo_memstats_alloc_bytes_total %d\n", objects, bytes)
	})
	// Ends with the process; nobody waits for it.
	go http.Serve(side, mux)
	return json.NewEncoder(os.Stdout).Encode(Addresses{Serve: serving.Addr().String(), Metrics: side.Addr().String()})
}

func allocated() (objects, bytes uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:objects"}, {Name: "/gc/heap/tiny/allocs:objects"}, {Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64(), samples[2].Value.Uint64()
}

// Fatal prints err and ends the process.
func Fatal(err error) {
	fmt.Fprintln(os.Stderr, err)
	os.Exit(1)
}
