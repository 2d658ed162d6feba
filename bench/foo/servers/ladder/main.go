// Command ladder serves one version of the service in examples/foo with the server of net/http, and
// our own version also on the event loop.
package main

import (
	"flag"
	"fmt"
	"net"
	"net/http"
	"strings"

	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
	"github.com/slipstream-go/slipstream/examples/foo/ladder"
)

func main() {
	version := flag.String("version", "slipstream", "of the service: "+strings.Join(ladder.Versions(), ", "))
	engine := flag.String("engine", "net/http", "net/http, or loop for the version slipstream")
	flag.Parse()
	if err := serve(*version, *engine); err != nil {
		sidecar.Fatal(err)
	}
}

// serve returns only if it fails.
func serve(version, engine string) error {
	service, err := ladder.New(version)
	if err != nil {
		return err
	}
	mux := http.NewServeMux()
	mux.Handle("/foo", service)
	switch {
	case engine == "loop" && version == "slipstream":
		f, err := newFront()
		if err != nil {
			return err
		}
		if err := sidecar.AnnounceAddr(f.rest.address); err != nil {
			return err
		}
		return http.Serve(f.rest, mux)
	case engine != "net/http":
		return fmt.Errorf("engine %q for version %s, want net/http, or loop for slipstream", engine, version)
	}
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		return err
	}
	if err := sidecar.Announce(listener); err != nil {
		return err
	}
	return http.Serve(listener, mux)
}
