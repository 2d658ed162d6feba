// Command netpoll echoes with cloudwego/netpoll.
package main

import (
	"context"
	"net"

	"github.com/cloudwego/netpoll"

	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		sidecar.Fatal(err)
	}
	loop, err := netpoll.NewEventLoop(func(_ context.Context, conn netpoll.Connection) error {
		if err := echo(conn); err != nil {
			return conn.Close()
		}
		return nil
	})
	if err != nil {
		sidecar.Fatal(err)
	}
	if err := sidecar.Announce(listener); err != nil {
		sidecar.Fatal(err)
	}
	sidecar.Fatal(loop.Serve(listener))
}

// echo sends back what it received. The bytes are linked, not copied: they are
// released after they are sent.
func echo(conn netpoll.Connection) error {
	reader, writer := conn.Reader(), conn.Writer()
	in, err := reader.Next(reader.Len())
	if err != nil {
		return err
	}
	if err := writer.WriteDirect(in, 0); err != nil {
		return err
	}
	if err := writer.Flush(); err != nil {
		return err
	}
	return reader.Release()
}
