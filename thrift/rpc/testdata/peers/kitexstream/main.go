//go:build ignore

// A Kitex streaming server or client for chat.thrift, used by streamforeign_test.go:
//
//	kitex server PORT
//	kitex client PORT
//	kitex echo PORT STREAMS MESSAGES
//
// The last one is for BenchmarkStreamProcesses. The test generates the package gen/chat and builds the program. The server writes a line for each handler that ended
// because its client ended the stream.
package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"runtime"
	"strconv"
	"strings"
	"sync"
	"time"

	"github.com/bytedance/gopkg/cloud/metainfo"
	"github.com/cloudwego/kitex/client"
	"github.com/cloudwego/kitex/pkg/kerrors"
	"github.com/cloudwego/kitex/pkg/klog"
	"github.com/cloudwego/kitex/pkg/streaming"
	"github.com/cloudwego/kitex/server"

	"github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/chat"
	service "github.com/slipstream-go/slipstream/bench/thrift-rpc-programs/gen/chat/chat"
)

func main() {
	klog.SetLevel(klog.LevelFatal)
	addr := net.JoinHostPort("127.0.0.1", os.Args[2])
	var err error
	switch os.Args[1] {
	case "server":
		err = serve(addr)
	case "client":
		err = call(addr)
	case "echo":
		streams, _ := strconv.Atoi(os.Args[3])
		messages, _ := strconv.Atoi(os.Args[4])
		err = echo(addr, streams, messages)
	}
	if err != nil {
		fmt.Fprintln(os.Stderr, err)
		os.Exit(1)
	}
}

type handler struct{}

func obey(ctx context.Context, m *chat.Message) error {
	switch kind, text, _ := strings.Cut(m.Text, " "); kind {
	case "wait", "announce": // the latter writes a line first
		if kind == "announce" {
			fmt.Println("waiting")
		}
		<-ctx.Done()
		fmt.Println("ended", ctx.Err())
		return ctx.Err()
	case "status":
		return kerrors.NewBizStatusErrorWithExtra(7, text, map[string]string{"a": "b"})
	case "fail":
		return errors.New(text)
	case "meta":
		tenant, _ := metainfo.GetPersistentValue(ctx, "TENANT")
		user, _ := metainfo.GetValue(ctx, "USER")
		m.Text = tenant + " " + user
	}
	return nil
}

func (handler) Talk(ctx context.Context, s chat.Chat_talkServer) error {
	for {
		m, err := s.Recv(ctx)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			return err
		}
		if m.Text == "headers" {
			if err := errors.Join(s.SetHeader(streaming.Header{"region": "eu"}), s.SetTrailer(streaming.Trailer{"cost": "7"})); err != nil {
				return err
			}
		}
		if err := obey(ctx, m); err != nil {
			return err
		}
		if err := s.Send(ctx, m); err != nil {
			return err
		}
	}
}

func (handler) Collect(ctx context.Context, s chat.Chat_collectServer) error {
	n := int64(0)
	for {
		m, err := s.Recv(ctx)
		if err == io.EOF {
			return s.SendAndClose(ctx, &chat.Message{Number: n})
		}
		if err != nil {
			return err
		}
		if err := obey(ctx, m); err != nil {
			return err
		}
		n++
	}
}

func (handler) Watch(ctx context.Context, m *chat.Message, s chat.Chat_watchServer) error {
	if err := obey(ctx, m); err != nil {
		return err
	}
	for i := range m.Number {
		if err := s.Send(ctx, &chat.Message{Text: m.Text, Number: i, Blob: m.Blob}); err != nil {
			return err
		}
	}
	return nil
}

func (handler) Echo(_ context.Context, m *chat.Message) (*chat.Message, error) { return m, nil }

func serve(addr string) error {
	l, err := net.Listen("tcp", addr)
	if err != nil {
		return err
	}
	return service.NewServer(new(handler), server.WithListener(l)).Run()
}

// sizes holds the sizes of messages.
var sizes = []int{0, 1, 100, 1 << 10, 60 << 10, 70 << 10, 200 << 10, 10}

func call(addr string) error {
	c, err := service.NewClient("chat", client.WithHostPorts(addr))
	if err != nil {
		return err
	}
	for i, test := range []func(context.Context, service.Client) error{cancel, deadline, collect, watch, fails, meta, headers, unary} {
		ctx, stop := context.WithTimeout(context.Background(), time.Minute)
		err := test(ctx, c)
		stop()
		if err != nil {
			return fmt.Errorf("test %d: %w", i, err)
		}
	}
	for range runtime.GOMAXPROCS(0) { // once per connection: when these are answered, all resets have been received
		if err := talk(context.Background(), c); err != nil {
			return fmt.Errorf("talk: %w", err)
		}
	}
	return nil
}

func talk(ctx context.Context, c service.Client) error {
	s, err := c.Talk(ctx)
	if err != nil {
		return err
	}
	for i, size := range sizes {
		text := strings.Repeat("x", size)
		if err := s.Send(ctx, &chat.Message{Text: text, Number: int64(i)}); err != nil {
			return err
		}
		if m, err := s.Recv(ctx); err != nil || m.Text != text || m.Number != int64(i) {
			return fmt.Errorf("message %d: %w", i, err)
		}
	}
	if err := s.CloseSend(ctx); err != nil {
		return err
	}
	if _, err := s.Recv(ctx); err != io.EOF {
		return fmt.Errorf("after the end: %w", err)
	}
	return nil
}

func collect(ctx context.Context, c service.Client) error {
	s, err := c.Collect(ctx)
	if err != nil {
		return err
	}
	for range 1000 {
		if err := s.Send(ctx, &chat.Message{Text: "some text"}); err != nil {
			return err
		}
	}
	m, err := s.CloseAndRecv(ctx)
	if err != nil || m.Number != 1000 {
		return fmt.Errorf("%v, %w", m, err)
	}
	return nil
}

func watch(ctx context.Context, c service.Client) error {
	for _, size := range sizes {
		s, err := c.Watch(ctx, &chat.Message{Number: 100, Blob: make([]byte, size)})
		if err != nil {
			return err
		}
		for i := range int64(100) {
			if m, err := s.Recv(ctx); err != nil || m.Number != i || len(m.Blob) != size {
				return fmt.Errorf("message %d of %d bytes: %v, %w", i, size, m, err)
			}
		}
		if _, err := s.Recv(ctx); err != io.EOF {
			return fmt.Errorf("after the end: %w", err)
		}
	}
	return nil
}

func fails(ctx context.Context, c service.Client) error {
	s, err := c.Talk(ctx)
	if err != nil {
		return err
	}
	if err := s.Send(ctx, &chat.Message{Text: "fail broken"}); err != nil {
		return err
	}
	if _, err := s.Recv(ctx); err == nil || !strings.Contains(err.Error(), "broken") {
		return fmt.Errorf("an error: %w", err)
	}
	if s, err = c.Talk(ctx); err != nil {
		return err
	}
	if err := s.Send(ctx, &chat.Message{Text: "status sold out"}); err != nil {
		return err
	}
	_, err = s.Recv(ctx)
	status, ok := kerrors.FromBizStatusError(err)
	if !ok || status.BizStatusCode() != 7 || status.BizMessage() != "sold out" || status.BizExtra()["a"] != "b" {
		return fmt.Errorf("a status: %w", err)
	}
	return nil
}

func meta(ctx context.Context, c service.Client) error {
	s, err := c.Talk(metainfo.WithValue(metainfo.WithPersistentValue(ctx, "TENANT", "a"), "USER", "b"))
	if err != nil {
		return err
	}
	if err := s.Send(ctx, &chat.Message{Text: "meta"}); err != nil {
		return err
	}
	m, err := s.Recv(ctx)
	if err != nil || !strings.Contains(m.Text, "TENANT a") || !strings.Contains(m.Text, "USER b") {
		return fmt.Errorf("%v, %w", m, err)
	}
	return s.CloseSend(ctx)
}

// echo sends messages of 1 KB on some streams and receives their echoes, with one in flight on each. It first sends some
// to warm up. Then it says that it is ready, waits for a line, and says when it is done.
func echo(addr string, streams, messages int) error {
	c, err := service.NewClient("chat", client.WithHostPorts(addr))
	if err != nil {
		return err
	}
	open := make([]interface {
		Send(context.Context, *chat.Message) error
		Recv(context.Context) (*chat.Message, error)
	}, streams)
	for i := range open {
		if open[i], err = c.Talk(context.Background()); err != nil {
			return err
		}
	}
	text := strings.Repeat("x", 1000)
	run := func(messages int) error {
		var all sync.WaitGroup
		failures := make(chan error, streams)
		for i, s := range open {
			// Ends when it has sent its messages, or with the first error; run waits for it.
			all.Go(func() {
				for n := i; n < messages; n += streams {
					err := s.Send(context.Background(), &chat.Message{Text: text})
					if err == nil {
						_, err = s.Recv(context.Background())
					}
					if err != nil {
						failures <- err
						return
					}
				}
			})
		}
		all.Wait()
		close(failures)
		return <-failures
	}
	if err := run(20_000); err != nil {
		return err
	}
	fmt.Println("ready")
	_, _ = fmt.Scanln()
	err = run(messages)
	fmt.Println("done")
	_, _ = fmt.Scanln()
	return err
}

// headers receives the header and the trailer of a handler that sets both, and of one that sets neither.
func headers(ctx context.Context, c service.Client) error {
	for _, text := range []string{"headers", "other"} {
		s, err := c.Talk(ctx)
		if err != nil {
			return err
		}
		if err := s.Send(ctx, &chat.Message{Text: text}); err != nil {
			return err
		}
		header, err := s.Header()
		if err != nil || text == "headers" && (len(header) != 1 || header["region"] != "eu") || text == "other" && len(header) != 0 {
			return fmt.Errorf("%s: the header %v, %w", text, header, err)
		}
		if m, err := s.Recv(ctx); err != nil || m.Text != text {
			return fmt.Errorf("%v, %w", m, err)
		}
		if err := s.CloseSend(ctx); err != nil {
			return err
		}
		if _, err := s.Recv(ctx); err != io.EOF {
			return fmt.Errorf("after the end: %w", err)
		}
		trailer, err := s.Trailer()
		if text == "headers" && (err != nil || len(trailer) != 1 || trailer["cost"] != "7") || text == "other" && len(trailer) != 0 {
			return fmt.Errorf("%s: the trailer %v, %w", text, trailer, err)
		}
	}
	return nil
}

// cancel ends a stream whose handler waits.
func cancel(ctx context.Context, c service.Client) error {
	ctx, stop := context.WithCancel(ctx)
	defer stop()
	s, err := c.Talk(ctx)
	if err != nil {
		return err
	}
	if err := s.Send(ctx, &chat.Message{Text: "wait"}); err != nil {
		return err
	}
	time.AfterFunc(10*time.Millisecond, stop)
	if _, err := s.Recv(ctx); !errors.Is(err, kerrors.ErrStreamingCanceled) {
		return fmt.Errorf("received %w", err)
	}
	return nil
}

func deadline(ctx context.Context, c service.Client) error {
	ctx, stop := context.WithTimeout(ctx, 50*time.Millisecond)
	defer stop()
	s, err := c.Talk(ctx)
	if err != nil {
		return err
	}
	if err := s.Send(ctx, &chat.Message{Text: "wait"}); err != nil {
		return err
	}
	if _, err := s.Recv(ctx); !errors.Is(err, kerrors.ErrStreamingTimeout) {
		return fmt.Errorf("received %w", err)
	}
	return nil
}

func unary(ctx context.Context, c service.Client) error {
	m, err := c.Echo(ctx, &chat.Message{Number: 5})
	if err != nil || m.Number != 5 {
		return fmt.Errorf("%v, %w", m, err)
	}
	return nil
}
