// Command gnet echoes with panjf2000/gnet, an event loop a processor.
package main

import (
	"net"

	"github.com/panjf2000/gnet/v2"
	"github.com/panjf2000/gnet/v2/pkg/logging"

	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

// A server echoes.
type server struct {
	gnet.BuiltinEventEngine
	address string
}

// OnBoot tells the harness that connections are accepted.
func (s *server) OnBoot(gnet.Engine) gnet.Action {
	at, err := net.ResolveTCPAddr("tcp", s.address)
	if err == nil {
		err = sidecar.AnnounceAddr(at)
	}
	if err != nil {
		sidecar.Fatal(err)
	}
	return gnet.None
}

// OnTraffic answers what has come.
func (s *server) OnTraffic(c gnet.Conn) gnet.Action {
	in, err := c.Next(-1)
	if err != nil {
		return gnet.Close
	}
	if _, err := c.Write(in); err != nil {
		return gnet.Close
	}
	return gnet.None
}

func main() {
	address, err := proc.FreePort()
	if err != nil {
		sidecar.Fatal(err)
	}
	// Errors alone: the default is to log each connection that ends with a reset.
	sidecar.Fatal(gnet.Run(&server{address: address}, "tcp://"+address, gnet.WithMulticore(true), gnet.WithLogLevel(logging.FatalLevel)))
}
