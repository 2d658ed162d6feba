// Command loop echoes with internal/loop.
package main

import (
	"flag"
	"fmt"
	"runtime"

	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// A session echoes.
type session struct{}

// Data echoes the bytes that have arrived.
func (session) Data(c *loop.Conn, in []byte) int {
	o := c.Output()
	o.B = append(o.B, in...)
	return len(in)
}

// Closed has nothing to release.
func (session) Closed(*loop.Conn, error) {}

func main() {
	name := flag.String("backend", "epoll", "epoll or goroutines")
	flag.Parse()
	backend, ok := map[string]loop.Backend{"epoll": loop.Epoll, "goroutines": loop.Goroutines}[*name]
	if !ok {
		sidecar.Fatal(fmt.Errorf("backend %q, want epoll or goroutines", *name))
	}
	server, err := loop.New(loop.Config{New: func(*loop.Conn) loop.Session { return session{} }, Backend: backend})
	if err != nil {
		sidecar.Fatal(err)
	}
	listeners, err := loop.Listen("tcp", "127.0.0.1:0", runtime.GOMAXPROCS(0))
	if err != nil {
		sidecar.Fatal(err)
	}
	if err := server.Serve(listeners...); err != nil {
		sidecar.Fatal(err)
	}
	if err := sidecar.AnnounceAddr(listeners[0].Addr()); err != nil {
		sidecar.Fatal(err)
	}
	select {} // until it is killed
}
