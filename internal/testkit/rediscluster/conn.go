package rediscluster

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// replyTimeout bounds the time of a command of this package.
const replyTimeout = 5 * time.Second

// ReplyError is an error reply of a server.
type ReplyError string

func (e ReplyError) Error() string { return string(e) }

// conn is a connection that sends one command at a time, in version 2 of the protocol.
type conn struct {
	net     net.Conn
	scanner *resp.Scanner
	in      []byte // read and not used yet
}

// dial connects and, if there is a password, logs in.
func dial(addr string, config *tls.Config, password string) (*conn, error) {
	dialer := &net.Dialer{Timeout: replyTimeout}
	var c net.Conn
	var err error
	if config != nil {
		c, err = tls.DialWithDialer(dialer, "tcp", addr, config)
	} else {
		c, err = dialer.Dial("tcp", addr)
	}
	if err != nil {
		return nil, err
	}
	k := &conn{net: c, scanner: resp.NewScanner(resp.Limits{})}
	if password != "" {
		if _, err := k.do("AUTH", password); err != nil {
			c.Close()
			return nil, err
		}
	}
	return k, nil
}

// do sends a command and returns its reply. A [ReplyError] leaves the connection usable; any
// other error does not.
func (c *conn) do(args ...string) (resp.Value, error) {
	if err := c.net.SetDeadline(time.Now().Add(replyTimeout)); err != nil {
		return resp.Value{}, err
	}
	if _, err := c.net.Write(resp.AppendCommand(nil, args...)); err != nil {
		return resp.Value{}, err
	}
	for {
		if len(c.in) > 0 {
			n, verdict, err := c.scanner.Scan(c.in)
			if err != nil {
				return resp.Value{}, err
			}
			if verdict == resp.Done {
				frame := slices.Clone(c.in[:n])
				c.in = c.in[n:]
				return parse(frame)
			}
		}
		c.in = slices.Grow(c.in, 4096)
		n, err := c.net.Read(c.in[len(c.in):cap(c.in)])
		c.in = c.in[:len(c.in)+n]
		if err != nil && n == 0 {
			return resp.Value{}, err
		}
	}
}

func parse(frame []byte) (resp.Value, error) {
	v, _, err := resp.Parse(frame, resp.Limits{})
	if err != nil {
		return v, err
	}
	if v.Kind == resp.SimpleError {
		return v, ReplyError(v.Str)
	}
	return v, nil
}

// isReply reports whether the server has replied, even if with an error.
func isReply(err error) bool {
	var e ReplyError
	return err == nil || errors.As(err, &e)
}

// words returns the elements of a reply as strings.
func words(v resp.Value) []string {
	list := make([]string, len(v.Elems))
	for i, e := range v.Elems {
		list[i] = text(e)
	}
	return list
}

func text(v resp.Value) string {
	if v.Kind == resp.Integer {
		return fmt.Sprint(v.Int)
	}
	return string(v.Str)
}

// pairs returns a flat list of names and values as a map.
func pairs(v resp.Value) map[string]string {
	m := make(map[string]string, len(v.Elems)/2)
	for i := 0; i+1 < len(v.Elems); i += 2 {
		m[text(v.Elems[i])] = text(v.Elems[i+1])
	}
	return m
}
