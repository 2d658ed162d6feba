package rpc_test

import (
	"bufio"
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/chat"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// kitexStreams builds the Kitex streaming program and returns its path.
func kitexStreams(t testing.TB) string {
	tool := os.Getenv("SLIPSTREAM_KITEX")
	if tool == "" {
		t.Skip("SLIPSTREAM_KITEX does not name Kitex's tool: make reference runs this test")
	}
	absolute, err := filepath.Abs("testdata")
	if err != nil {
		t.Fatal(err)
	}
	return buildKitex(t, tool, absolute, "kitexstream", "chat.thrift", "-streamx")
}

// Kitex clients open streams to our server.
func TestKitexClientsOfStreams(t *testing.T) {
	h := newChatter()
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(h))
	_, port, _ := net.SplitHostPort(s.Addr().String())
	if out, err := exec.CommandContext(t.Context(), kitexStreams(t), "client", port).CombinedOutput(); err != nil {
		t.Errorf("%v\n%s", err, out)
	}
	// Two of the client's streams waited until they were reset.
	for range 2 {
		if err := <-h.ended; !errors.Is(err, rpc.ErrStreamReset) {
			t.Errorf("a handler has ended because of %v", err)
		}
	}
	if n := s.Stats().Malformed; n != 0 {
		t.Errorf("%d malformed messages", n)
	}
}

// startKitexStreams starts a Kitex streaming server, and returns its port and its output lines.
func startKitexStreams(t *testing.T) (port string, lines <-chan string) {
	program := kitexStreams(t)
	port = strconv.Itoa(freePort(t))
	cmd := exec.CommandContext(t.Context(), program, "server", port)
	out, err := cmd.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		_ = cmd.Process.Kill()
		_ = cmd.Wait()
	})
	all := make(chan string, 100)
	go func() { // ends with the process
		for s := bufio.NewScanner(out); s.Scan(); {
			all <- s.Text()
		}
	}()
	return port, all
}

func freePort(t testing.TB) int {
	t.Helper()
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	return l.Addr().(*net.TCPAddr).Port
}

// Our client opens streams to a Kitex server.
func TestStreamsOfKitexServers(t *testing.T) {
	port, lines := startKitexStreams(t)
	all, err := rpc.NewStreamClient(rpc.StreamConfig{Addr: net.JoinHostPort("127.0.0.1", port), DialTimeout: patience})
	if err != nil {
		t.Fatal(err)
	}
	defer all.Close()
	c := chat.NewChatStreamClient(all)
	ctx, cancel := context.WithTimeout(rpc.WithMeta(t.Context(), tenant, user), time.Minute)
	defer cancel()
	// The first stream of the connection sends more than it may before the server has sent anything.
	collect, err := c.Collect(ctx)
	if err != nil {
		t.Fatal(err)
	}
	for range 1000 {
		if err := collect.Send(ctx, &chat.Message{Text: strings.Repeat("x", 1000)}); err != nil {
			t.Fatal(err)
		}
	}
	if m, err := collect.CloseAndRecv(ctx); err != nil || m.Number != 1000 {
		t.Errorf("collected %v, %v", m, err)
	}
	st, err := c.Talk(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for i, size := range []int{0, 1, 1 << 10, 60 << 10, 70 << 10, 500 << 10} {
		sent := &chat.Message{Text: strings.Repeat("x", size), Number: int64(i)}
		if err := st.Send(ctx, sent); err != nil {
			t.Fatal(err)
		}
		if m, err := st.Recv(ctx); err != nil || m.Text != sent.Text || m.Number != sent.Number {
			t.Fatalf("message %d: %v", i, err)
		}
	}
	_ = st.Send(ctx, &chat.Message{Text: "meta"})
	if m, err := st.Recv(ctx); err != nil || m.Text != "a b" {
		t.Errorf("metadata: %v, %v", m, err)
	}
	if err := st.CloseSend(ctx); err != nil {
		t.Error(err)
	}
	if _, err := st.Recv(ctx); err != io.EOF {
		t.Errorf("after the end: %v", err)
	}
	expectMeta(t, st, nil, nil)
	headersOfKitex(ctx, t, c)
	watch, err := c.Watch(ctx, &chat.Message{Number: 500, Text: "text"})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	n := int64(0)
	for m, err := range watch.All(ctx) {
		if err != nil || m.Number != n {
			t.Fatalf("message %d: %v, %v", n, m, err)
		}
		n++
	}
	if n != 500 {
		t.Errorf("%d messages", n)
	}
	errorsOfKitex(ctx, t, c)
	tooMuchOfKitex(ctx, t, all, c)
	for name, end := range map[string]func(cancel func(), st *rpc.BidiStreamingClient[chat.Message, chat.Message]){
		"cancel": func(cancel func(), _ *rpc.BidiStreamingClient[chat.Message, chat.Message]) { cancel() },
		"close":  func(_ func(), st *rpc.BidiStreamingClient[chat.Message, chat.Message]) { st.Close() },
	} {
		ctx, cancel := context.WithCancel(ctx)
		st, err := c.Talk(ctx)
		if err != nil {
			t.Fatal(err)
		}
		if err := st.Send(ctx, &chat.Message{Text: "wait"}); err != nil {
			t.Fatal(err)
		}
		end(cancel, st)
		select {
		case line := <-lines:
			if !strings.Contains(line, "ended") || !strings.Contains(line, "code=12007") {
				t.Errorf("%s: the handler says %q", name, line)
			}
		case <-time.After(patience):
			t.Errorf("%s: the handler was not ended", name)
		}
		st.Close()
		cancel()
	}
	testkit.Eventually(t, patience, func() error {
		if s := all.Stats(); s.Open != 0 || s.Reconnects != 0 {
			return fmt.Errorf("%d streams are open, %d connections were lost", s.Open, s.Reconnects)
		}
		return nil
	})
}

// headersOfKitex receives the header and the trailer of a Kitex handler.
func headersOfKitex(ctx context.Context, t *testing.T, c *chat.ChatStreamClient) {
	t.Helper()
	st, err := c.Talk(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if err := errors.Join(st.Send(ctx, &chat.Message{Text: "headers"}), st.CloseSend(ctx)); err != nil {
		t.Fatal(err)
	}
	expectMeta(t, st, pairs{"region": "eu"}, nil)
	if m, err := st.Recv(ctx); err != nil || m.Text != "headers" {
		t.Fatalf("received %v, %v", m, err)
	}
	expectEnd(t, st)
	expectMeta(t, st, pairs{"region": "eu"}, pairs{"cost": "7"})
}

// errorsOfKitex receives errors from Kitex handlers.
func errorsOfKitex(ctx context.Context, t *testing.T, c *chat.ChatStreamClient) {
	t.Helper()
	for _, text := range []string{"status sold out", "fail broken"} {
		st, err := c.Talk(ctx)
		if err != nil {
			t.Fatal(err)
		}
		defer st.Close()
		_ = st.Send(ctx, &chat.Message{Text: text})
		_, err = st.Recv(ctx)
		status, isStatus := errors.AsType[*rpc.StatusError](err)
		e, isException := errors.AsType[*thrift.ApplicationException](err)
		switch {
		case slipstream.OutcomeOf(err) != slipstream.Executed:
			t.Errorf("%s: %v", text, err)
		case text == "fail broken" && (!isException || e.Kind != thrift.InternalError || !strings.Contains(e.Message, "broken")):
			t.Errorf("%s: %v", text, err)
		case text != "fail broken" && (!isStatus || status.Code != 7 || status.Message != "sold out" || status.Details["a"] != "b"):
			t.Errorf("%s: %v", text, err)
		}
	}
}

// tooMuchOfKitex does not receive the messages of a Kitex server: the stream is reset, and the others continue.
func tooMuchOfKitex(ctx context.Context, t *testing.T, all *rpc.StreamClient, c *chat.ChatStreamClient) {
	t.Helper()
	watch, err := c.Watch(ctx, &chat.Message{Number: 1 << 40, Blob: make([]byte, 1000)})
	if err != nil {
		t.Fatal(err)
	}
	defer watch.Close()
	testkit.Eventually(t, patience, func() error {
		if all.Stats().Overflows != 1 {
			return errors.New("the stream has no end")
		}
		return nil
	})
	n := int64(0)
	for m, err := range watch.All(ctx) {
		if err != nil {
			if !errors.Is(err, rpc.ErrStreamOverflow) || n < 500 {
				t.Errorf("after %d messages: %v", n, err)
			}
			return
		}
		if m.Number != n {
			t.Fatalf("message %d: %v", n, m)
		}
		n++
	}
	t.Errorf("%d messages, and no error", n)
}
