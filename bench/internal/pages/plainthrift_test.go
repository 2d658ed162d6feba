package pages

import (
	"bufio"
	"errors"
	"io"
	"net"
	"testing"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A connection asks for each document once if it learns, and refuses an answer with another one.
// Suite thrift-services has the gateway answer.
func TestAnswersOfThriftAreCompared(t *testing.T) {
	for name, answer := range map[string]func(n int) []byte{
		"right":   answerOf,
		"another": func(n int) []byte { return answerOf((n + 1) % Count) },
		"short":   func(int) []byte { return message(3, nil) },
	} {
		l, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			t.Fatal(err)
		}
		asked := make(map[int]int) // by document
		done := make(chan struct{})
		// Ends when the client has closed its connection, or the listener is closed; waited for below.
		go func() {
			defer close(done)
			for {
				conn, err := l.Accept()
				if err != nil {
					return
				}
				reader, request := bufio.NewReader(conn), callOf(0)
				for {
					if _, err := io.ReadFull(reader, request); err != nil {
						break
					}
					n := 0
					for _, digit := range request[len(request)-1-len(Code(0)) : len(request)-1] {
						n = 10*n + int(digit-'0')
					}
					asked[n]++
					_, _ = conn.Write(answer(n)) // fails if the client has already disconnected
				}
				_ = conn.Close()
			}
		}()
		spec := loadproc.Spec{Address: l.Addr().String(), Learn: true}
		target, err := openThrift(t.Context(), spec)
		if name != "right" {
			if !errors.Is(err, errReply) {
				t.Errorf("%s: error %v, want %v", name, err, errReply)
			}
		} else {
			if err != nil {
				t.Fatal(err)
			}
			c, err := target.NewCaller(t.Context(), 0)
			if err != nil {
				t.Fatal(err)
			}
			outcomes := make([]error, 16)
			c.(load.BatchCaller).DoBatch(t.Context(), outcomes)
			if err := errors.Join(append(outcomes, c.Close())...); err != nil {
				t.Error(err)
			}
		}
		_ = l.Close()
		<-done
		if name == "right" && len(asked) != Count {
			t.Errorf("%d documents were asked for, want %d", len(asked), Count)
		}
	}
}
