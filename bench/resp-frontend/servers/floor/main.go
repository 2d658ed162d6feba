// Command floor answers GET of the Redis protocol with package floor, with prepared bulk strings of
// the suite's documents and the same keys as a gateway.
package main

import (
	"net"

	"github.com/slipstream-go/slipstream/bench/internal/floor"
	"github.com/slipstream-go/slipstream/bench/internal/pages"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		sidecar.Fatal(err)
	}
	server, err := floor.Serve(listener.(*net.TCPListener), floor.Values(pages.Values()), floor.Options{})
	if err != nil {
		sidecar.Fatal(err)
	}
	if err := sidecar.AnnounceAddr(server.Addr()); err != nil {
		sidecar.Fatal(err)
	}
	select {} // until it is killed
}
