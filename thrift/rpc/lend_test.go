package rpc_test

import (
	"bytes"
	"context"
	"encoding/binary"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A large message is sent without copying it. If its call is abandoned after a part of it has been written, the rest is
// sent unchanged, although the call has ended.
// mutant: rpc-lent-message-is-free-when-its-call-ends
func TestGivenUpLargeCallIsSentUnchanged(t *testing.T) {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer listener.Close()
	begun, ended := make(chan struct{}), make(chan struct{})
	received := make(chan []byte, 1)
	go func() {
		for {
			conn, err := listener.Accept()
			if err != nil {
				return
			}
			go func() {
				defer conn.Close()
				_ = conn.SetReadDeadline(time.Now().Add(patience))
				head := make([]byte, 4)
				if _, err := io.ReadFull(conn, head); err != nil {
					return // the connection for small calls
				}
				close(begun)
				<-ended
				message := make([]byte, binary.BigEndian.Uint32(head))
				n, _ := io.ReadFull(conn, message)
				received <- message[:n]
			}()
		}
	}()

	client := connect(t, rpc.ClientConfig{Addr: listener.Addr().String(), Transport: rpc.Framed})
	const size = 12 << 20 // more than socket buffers hold
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	defer cancel()
	go func() {
		select {
		case <-begun:
			cancel()
		case <-ctx.Done():
		}
	}()
	_, err = calc.NewCalculatorClient(client).Echo(ctx, strings.Repeat("a", size))
	if e, ok := errors.AsType[*slipstream.Error](err); !ok || e.Outcome != slipstream.MaybeExecuted {
		t.Fatalf("%v; want an error that the server may have executed the call", err)
	}
	close(ended)
	var message []byte
	select {
	case message = <-received:
	case <-time.After(patience):
		t.Fatal("the server received no message")
	}
	if n := bytes.Count(message, []byte("a")); n < size {
		t.Errorf("the server received %d bytes of the text in %d; want %d", n, len(message), size)
	}
}
