package redisload

import (
	"bufio"
	"bytes"
	"context"
	"net"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
)

// dialPlain opens connections for clients that always greet the server with commands that twemproxy
// does not know, and on which it closes the connection. Each of these commands is replaced with a
// script that replies like an old server. Clients then use RESP2.
func dialPlain(ctx context.Context, network, address string) (net.Conn, error) {
	conn, err := (&net.Dialer{Timeout: 5 * time.Second}).DialContext(ctx, network, address)
	if err != nil {
		return nil, err
	}
	return &plainConn{Conn: conn}, nil
}

// A plainConn replaces HELLO and CLIENT in its first write, which always contains complete
// commands.
type plainConn struct {
	net.Conn
	greeted bool // owned by the goroutine that writes
}

// unknownScript replies like a server that does not know HELLO.
var unknownScript = redisserver.EncodeCommand([]string{"EVAL", `return redis.error_reply("ERR unknown command 'HELLO'")`, "1", "k"})

func (c *plainConn) Write(b []byte) (int, error) {
	if c.greeted {
		return c.Conn.Write(b)
	}
	c.greeted = true
	var out bytes.Buffer
	for rest := bufio.NewReader(bytes.NewReader(b)); ; {
		args, err := redisserver.ReadCommand(rest)
		if err != nil {
			break
		}
		if strings.EqualFold(args[0], "HELLO") || strings.EqualFold(args[0], "CLIENT") {
			out.WriteString(unknownScript)
			continue
		}
		out.WriteString(redisserver.EncodeCommand(args))
	}
	if _, err := c.Conn.Write(out.Bytes()); err != nil {
		return 0, err
	}
	return len(b), nil
}
