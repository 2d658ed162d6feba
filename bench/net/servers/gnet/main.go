// Command gnet echoes with panjf2000/gnet, one event loop per processor.
package main

import (
	"fmt"
	"net"
	"os"

	"github.com/panjf2000/gnet/v2"

	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

// A server echoes.
type server struct {
	gnet.BuiltinEventEngine
	address string
}

// OnBoot notifies the harness that connections are accepted.
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

// OnTraffic echoes the bytes that have arrived.
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

// quiet keeps the library's log messages off standard output, which the harness reads, and drops
// everything except fatal messages, because each reset of a connection is logged as a warning.
type quiet struct{}

func (quiet) Debugf(string, ...any) {}
func (quiet) Infof(string, ...any)  {}
func (quiet) Warnf(string, ...any)  {}
func (quiet) Errorf(string, ...any) {}
func (quiet) Fatalf(format string, args ...any) {
	fmt.Fprintf(os.Stderr, format+"\n", args...)
}

func main() {
	address, err := proc.FreePort()
	if err != nil {
		sidecar.Fatal(err)
	}
	sidecar.Fatal(gnet.Run(&server{address: address}, "tcp://"+address, gnet.WithMulticore(true), gnet.WithLogger(quiet{})))
}
