// Command netpoll serves prepared responses with cloudwego/netpoll and the parser of package floor,
// which extracts the key and skips the header fields.
package main

import (
	"context"
	"net"

	"github.com/cloudwego/netpoll"

	"github.com/slipstream-go/slipstream/bench/internal/floor"
	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

func main() {
	answer := floor.Documents()
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		sidecar.Fatal(err)
	}
	loop, err := netpoll.NewEventLoop(func(_ context.Context, conn netpoll.Connection) error {
		if err := serve(conn, answer); err != nil {
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

// serve answers the requests that have arrived. The library calls it again while there is more
// input.
func serve(conn netpoll.Connection, answer floor.Answerer) error {
	reader, writer := conn.Reader(), conn.Writer()
	in, err := reader.Peek(reader.Len())
	if err != nil {
		return err
	}
	var room [64][]byte
	consumed, answers, err := answer(in, room[:0])
	if err != nil {
		return err
	}
	if consumed == 0 { // wait for more
		_, err := reader.Peek(len(in) + 1)
		return err
	}
	for _, a := range answers {
		// By reference, without a copy: the answers never change.
		if err := writer.WriteDirect(a, 0); err != nil {
			return err
		}
	}
	if err := reader.Skip(consumed); err != nil {
		return err
	}
	if err := reader.Release(); err != nil {
		return err
	}
	return writer.Flush()
}
