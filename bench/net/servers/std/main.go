// Command std echoes with package net: a goroutine and a buffer of 4 KiB for each
// connection.
package main

import (
	"net"

	"github.com/slipstream-go/slipstream/bench/internal/sidecar"
)

func main() {
	listener, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		sidecar.Fatal(err)
	}
	if err := sidecar.Announce(listener); err != nil {
		sidecar.Fatal(err)
	}
	for {
		conn, err := listener.Accept()
		if err != nil {
			sidecar.Fatal(err)
		}
		// Ends with the connection; nothing waits for it.
		go echo(conn)
	}
}

func echo(conn net.Conn) {
	defer conn.Close()
	buffer := make([]byte, 4096)
	for {
		n, err := conn.Read(buffer)
		if err != nil {
			return
		}
		if _, err := conn.Write(buffer[:n]); err != nil {
			return
		}
	}
}
