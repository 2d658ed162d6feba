package pages

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// answer serves one connection after another until the listener is closed. lookup returns the
// values.
func answer(l net.Listener, lookup func(key string) string) {
	for {
		conn, err := l.Accept()
		if err != nil {
			return
		}
		reader := bufio.NewReader(conn)
		for {
			n := 0
			if _, err := fmt.Fscanf(reader, "*%d\r\n", &n); err != nil {
				break
			}
			args := make([]string, n)
			for i := range args {
				size := 0
				if _, err := fmt.Fscanf(reader, "$%d\r\n", &size); err != nil {
					break
				}
				text := make([]byte, size+2)
				_, _ = io.ReadFull(reader, text) // a truncated request gets a wrong reply
				args[i] = string(text[:size])
			}
			reply := ""
			if args[0] == "MGET" {
				reply = fmt.Sprintf("*%d\r\n", n-1)
			}
			for _, key := range args[1:] {
				reply += lookup(key)
			}
			_, _ = io.WriteString(conn, reply) // fails if the client has already disconnected
		}
		_ = conn.Close()
	}
}

func TestPlainConnectionsCompareReplies(t *testing.T) {
	right := Values()
	for name, lookup := range map[string]func(string) string{
		"right":   func(key string) string { return string(bulk(right[key])) },
		"another": func(key string) string { return string(bulk([]byte(strings.Repeat("x", len(right[key]))))) },
		"missing": func(string) string { return "$-1\r\n" },
		"error":   func(string) string { return "-ERR no\r\n" },
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		done := make(chan struct{})
		// Ends when the listener and the client's connection are closed; waited for below.
		go func() { answer(l, lookup); close(done) }()
		for _, many := range []int{0, 3} {
			err := ask(t.Context(), loadproc.Spec{Address: l.Addr().String(), Array: many})
			if name == "right" && err != nil {
				t.Errorf("%d keys: %v", many, err)
			}
			if name != "right" && !errors.Is(err, errReply) {
				t.Errorf("%s, %d keys: error %v, want %v", name, many, err, errReply)
			}
		}
		_ = l.Close()
		<-done
	}
}

// ask sends single requests and a batch over one connection.
func ask(ctx context.Context, s loadproc.Spec) error {
	target, err := openPlain(ctx, s)
	if err != nil {
		return err
	}
	c, err := target.NewCaller(ctx, 0)
	if err != nil {
		return err
	}
	defer c.Close()
	for range 3 {
		if err := c.Do(ctx); err != nil {
			return err
		}
	}
	outcomes := make([]error, 16)
	c.(load.BatchCaller).DoBatch(ctx, outcomes)
	return errors.Join(outcomes...)
}
