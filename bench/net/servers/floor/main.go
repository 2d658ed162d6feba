// Command floor echoes with package floor. Its flags are the design choices of the loop.
package main

import (
	"flag"
	"net"

	"github.com/slipstream-go/slipstream/bench/internal/floor"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

func main() {
	var options floor.Options
	flag.IntVar(&options.Loops, "loops", 0, "`number` of loops; if 0, one per processor")
	flag.BoolVar(&options.Block, "block", false, "do not poll epoll without waiting before waiting")
	flag.BoolVar(&options.Yield, "yield", false, "yield before sleeping")
	flag.BoolVar(&options.Park, "park", false, "sleep in the runtime's poller")
	flag.BoolVar(&options.Map, "map", false, "find connections in a map")
	flag.StringVar((*string)(&options.Pool), "pool", "", "source of read buffers: classes, one; if empty, one buffer for each loop")
	flag.Parse()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		sidecar.Fatal(err)
	}
	server, err := floor.Serve(listener.(*net.TCPListener), floor.Echo, options)
	if err != nil {
		sidecar.Fatal(err)
	}
	if err := sidecar.AnnounceAddr(server.Addr()); err != nil {
		sidecar.Fatal(err)
	}
	select {} // until it is killed
}
