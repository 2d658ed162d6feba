// Command floor serves the departments with package floor: the minimum that a Go server can do for
// a document that it already has.
package main

import (
	"net"

	"github.com/slipstream-go/slipstream/bench/internal/floor"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		sidecar.Fatal(err)
	}
	server, err := floor.Serve(listener.(*net.TCPListener), floor.Documents(), floor.Options{})
	if err != nil {
		sidecar.Fatal(err)
	}
	if err := sidecar.AnnounceAddr(server.Addr()); err != nil {
		sidecar.Fatal(err)
	}
	select {} // until it is killed
}
