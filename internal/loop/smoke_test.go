package loop_test

import (
	"bufio"
	"bytes"
	"context"
	"fmt"
	"net"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/loop"
)

// lines echoes lines; "later" lines are answered from another goroutine.
type lines struct{}

func (lines) Data(c *loop.Conn, in []byte) (consumed int) {
	for !c.Full() {
		n := bytes.IndexByte(in[consumed:], '\n') + 1
		if n == 0 {
			break
		}
		line := in[consumed : consumed+n]
		consumed += n
		switch {
		case bytes.HasPrefix(line, []byte("later")):
			d := c.Defer(&late{text: string(line)})
			time.AfterFunc(20*time.Millisecond, d.Complete)
		case bytes.HasPrefix(line, []byte("end")):
			c.End()
		default:
			o := c.Output()
			o.B = append(o.B, line...)
		}
	}
	return consumed
}

func (lines) Closed(*loop.Conn, error) {}

type late struct{ text string }

func (l *late) Write(c *loop.Conn) {
	o := c.Output()
	o.B = append(o.B, l.text...)
}

func (l *late) Drop() {}

func TestEcho(t *testing.T) {
	s, err := loop.New(loop.Config{New: func(*loop.Conn) loop.Session { return lines{} }})
	if err != nil {
		t.Fatal(err)
	}
	ls, err := loop.Listen("tcp", "127.0.0.1:0", 2)
	if err != nil {
		t.Fatal(err)
	}
	address := ls[0].Addr().String()
	if err := s.Serve(ls...); err != nil {
		t.Fatal(err)
	}
	for range 20 {
		c, err := net.Dial("tcp", address)
		if err != nil {
			t.Fatal(err)
		}
		_ = c.SetDeadline(time.Now().Add(5 * time.Second))
		fmt.Fprintf(c, "one\nlater two\nthree\nlater four\nfi")
		r := bufio.NewReader(c)
		for _, want := range []string{"one\n", "later two\n", "three\n", "later four\n"} {
			if got, err := r.ReadString('\n'); got != want || err != nil {
				t.Fatalf("got %q, %v, want %q", got, err, want)
			}
		}
		fmt.Fprintf(c, "ve\nend\n")
		if got, err := r.ReadString('\n'); got != "five\n" || err != nil {
			t.Fatalf("got %q, %v", got, err)
		}
		if got, err := r.ReadString('\n'); got != "" || err == nil {
			t.Fatalf("got %q, %v, want the end", got, err)
		}
		c.Close()
	}
	ctx, cancel := context.WithTimeout(t.Context(), time.Second)
	defer cancel()
	if err := s.Shutdown(ctx); err != nil {
		t.Error(err)
	}
	t.Logf("%+v", s.Stats())
}
