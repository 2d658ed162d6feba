package main

import (
	"bytes"
	"context"
	"net"
	"time"
)

// dialPlain connects for clients that cannot be kept from sending HELLO, at
// which twemproxy closes the connection: a GET of a missing key goes in its
// place, whose empty reply these clients take for that of an old server.
func dialPlain(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &silentConn{Conn: conn}, nil
}

// A silentConn replaces HELLO at the start of its first write.
type silentConn struct {
	net.Conn
	greeted bool // owned by the goroutine that writes
}

// helloHead is followed by the version of the protocol, which takes helloSize.
var helloHead = []byte("*2\r\n$5\r\nhello\r\n")

const helloSize = len("$1\r\n2\r\n")

// helloScript answers as a server does that does not know HELLO.
var helloScript = []byte("*4\r\n$4\r\nEVAL\r\n" + bulk(`return redis.error_reply("ERR unknown command 'HELLO'")`) + "$1\r\n1\r\n$1\r\nk\r\n")

func (c *silentConn) Write(b []byte) (int, error) {
	if c.greeted {
		return c.Conn.Write(b)
	}
	c.greeted = true
	if len(b) < len(helloHead)+helloSize || !bytes.EqualFold(b[:len(helloHead)], helloHead) {
		return c.Conn.Write(b)
	}
	if _, err := c.Conn.Write(append(bytes.Clone(helloScript), b[len(helloHead)+helloSize:]...)); err != nil {
		return 0, err
	}
	return len(b), nil
}
