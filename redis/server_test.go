package redis_test

import (
	"errors"
	"io"
	"net"
	"strings"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// hangUp is the answer that makes a fake server close the connection.
const hangUp = "hang up"

// silence is the answer that makes a fake server send no reply.
const silence = ""

// fakeServer answers commands as a test specifies, and greetings automatically.
type fakeServer struct {
	*testkit.Listener

	// Guarded by mu.
	mu       sync.Mutex
	commands []string // all commands except those of greetings, such as "GET k"
}

// fake starts a server that answers each command with the result of answer, which gets the words of
// the command; conn counts connections from 0.
func fake(t testing.TB, answer func(conn int, args []string) string) *fakeServer {
	t.Helper()
	s := new(fakeServer)
	s.Listener = testkit.Serve(t, func(conn net.Conn, n int) {
		s.serve(conn, func(args []string) string { return answer(n, args) })
	})
	return s
}

// seen returns the commands received so far.
func (s *fakeServer) seen() []string {
	s.mu.Lock()
	defer s.mu.Unlock()
	return append([]string(nil), s.commands...)
}

func (s *fakeServer) serve(conn net.Conn, answer func(args []string) string) {
	scanner := resp.NewCommandScanner(resp.Limits{})
	var in []byte
	chunk := make([]byte, 64<<10)
	for {
		n, err := conn.Read(chunk)
		if err != nil {
			return
		}
		in = append(in, chunk[:n]...)
		for len(in) > 0 {
			n, words, verdict, err := scanner.Scan(in)
			if err != nil {
				return
			}
			if verdict == resp.More {
				break
			}
			var args []string
			for _, w := range words {
				args = append(args, string(w))
			}
			in = in[n:]
			reply := greetingReply(args)
			if reply == "" {
				s.mu.Lock()
				s.commands = append(s.commands, strings.Join(args, " "))
				s.mu.Unlock()
				reply = answer(args)
			}
			if reply == hangUp {
				return
			}
			if _, err := io.WriteString(conn, reply); err != nil {
				return
			}
		}
	}
}

// greetingReply returns the replies to the commands of a greeting.
func greetingReply(args []string) string {
	switch {
	case args[0] == "HELLO":
		return "%1\r\n+proto\r\n:3\r\n"
	case args[0] == "CLIENT" && args[1] == "SETINFO":
		return "+OK\r\n"
	}
	return ""
}

// errPlanted is an error that tests inject.
var errPlanted = errors.New("planted")
