package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"

	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// A protocol is the minimum that the engine needs to talk to a redis-server: RESP2, with a PING as
// the greeting, whose duration is the first estimate of the round trip.
type protocol struct{}

var (
	pingRequest = []byte("*1\r\n$4\r\nPING\r\n")
	pongReply   = []byte("+PONG\r\n")
	okReply     = []byte("+OK\r\n")
)

// Greet implements [pipe.Protocol].
func (protocol) Greet(_ context.Context, c net.Conn) ([]byte, error) {
	if _, err := c.Write(pingRequest); err != nil {
		return nil, err
	}
	reply := make([]byte, len(pongReply))
	if _, err := io.ReadFull(c, reply); err != nil {
		return nil, err
	}
	if !bytes.Equal(reply, pongReply) {
		return nil, fmt.Errorf("greeting answered by %q, want %q", reply, pongReply)
	}
	return nil, nil
}

// NewScanner implements [pipe.Protocol].
func (protocol) NewScanner() pipe.Scanner { return &scanner{} }

// AppendPing implements [pipe.Protocol].
func (protocol) AppendPing(b []byte) []byte { return append(b, pingRequest...) }

type scanner struct{ resp.Scanner }

// Scan implements [pipe.Scanner].
func (s *scanner) Scan(b []byte) (pipe.Frame, error) {
	n, verdict, err := s.Scanner.Scan(b)
	if err != nil {
		return pipe.Frame{}, err
	}
	f := pipe.Frame{Len: n}
	switch verdict {
	case resp.More:
		f.Verdict = pipe.More
	case resp.Push:
		f.Verdict = pipe.Push
	}
	return f, nil
}

var errNull = errors.New("the server has no such key")

// bulk returns the value of a reply that must be one bulk string. It aliases
// the reply.
func bulk(reply []byte) ([]byte, error) {
	d := resp.NewDecoder(reply)
	token, err := d.Next()
	switch {
	case err != nil:
		return nil, err
	case token.Kind != resp.BulkString:
		return nil, fmt.Errorf("reply %.60q, want a bulk string", reply)
	case token.Null:
		return nil, errNull
	}
	return token.Bytes, nil
}

// The values contain their key, so that a reply passed to the wrong caller is detected: the digits
// of the key are at the start and at the end.

const (
	keyDigits = 7
	minValue  = 2 * keyDigits
)

// keysOf returns the number of keys with values of a size, at most 16 MB of values.
func keysOf(size int) int { return max(min(10_000, 16<<20/size), 1) }

func keyName(size, i int) string { return fmt.Sprintf("value-%d:%0*d", size, keyDigits, i) }

func digitsOf(key string) string { return key[len(key)-keyDigits:] }

func valueOf(key string, size int) string {
	digits := digitsOf(key)
	return digits + strings.Repeat("v", size-minValue) + digits
}

// checkValue checks the length and both ends: checking all of a large value would cost the caller
// more than the measured operation.
func checkValue(key string, value []byte, size int) error {
	digits := digitsOf(key)
	if len(value) == size && string(value[:keyDigits]) == digits && string(value[size-keyDigits:]) == digits {
		return nil
	}
	return fmt.Errorf("value of %s has %d bytes and begins %.20q, want %d bytes and %s", key, len(value), value, size, digits)
}

func appendGet(b []byte, key string) []byte {
	b = append(b, "*2\r\n$3\r\nGET\r\n"...)
	return resp.AppendBulkString(b, key)
}

func appendSet(b []byte, key, value string) []byte {
	b = append(b, "*3\r\n$3\r\nSET\r\n"...)
	return resp.AppendBulkString(resp.AppendBulkString(b, key), value)
}
