package rpc_test

import (
	"context"
	"crypto/x509"
	"errors"
	"fmt"
	"io"
	"net"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/chat"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// chatter is the handler for the stream tests.
type chatter struct {
	gate  chan struct{}     // messages "wait" wait for it
	ended chan error        // receives the cause when a handler that waits for its end has ended
	began chan struct{}     // receives a value when such a handler starts
	talk  func(*talk) error // replaces Talk if not nil
}

type talk = rpc.BidiStreamingServer[chat.Message, chat.Message]

func newChatter() *chatter {
	return &chatter{gate: make(chan struct{}), ended: make(chan error, 1000), began: make(chan struct{}, 1000)}
}

// Talk echoes each message.
func (c *chatter) Talk(ctx context.Context, s *talk) error {
	if c.talk != nil {
		return c.talk(s)
	}
	for m, err := range s.All(ctx) {
		if err != nil {
			return err
		}
		if m.Text == "headers" {
			if err := errors.Join(s.SetHeader(pairs{"region": "eu"}), s.SetTrailer(pairs{"cost": "7"})); err != nil {
				return err
			}
		}
		if err := c.obey(ctx, m); err != nil {
			return err
		}
		if err := s.Send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

// obey does what a message says.
func (c *chatter) obey(ctx context.Context, m *chat.Message) error {
	switch kind, text, _ := strings.Cut(m.Text, " "); kind {
	case "wait":
		c.began <- struct{}{}
		select {
		case <-c.gate:
		case <-ctx.Done():
			c.ended <- context.Cause(ctx)
			return ctx.Err()
		}
	case "panic":
		panic(text)
	case "status":
		return &rpc.StatusError{Code: 7, Message: text, Details: map[string]string{"a": "b"}}
	case "protocol":
		return &thrift.ApplicationException{Kind: thrift.ProtocolError, Message: text}
	case "fail":
		return errors.New(text)
	case "meta":
		m.Text = fmt.Sprint(rpc.Received(ctx))
	case "deadline":
		at, ok := ctx.Deadline()
		m.Text = fmt.Sprint(ok, time.Until(at) > time.Minute)
	}
	return nil
}

// Collect returns the number of messages.
func (c *chatter) Collect(ctx context.Context, s *rpc.ClientStreamingServer[chat.Message]) (*chat.Message, error) {
	n := int64(0)
	for m, err := range s.All(ctx) {
		if err != nil {
			return nil, err
		}
		if err := c.obey(ctx, m); err != nil {
			return nil, err
		}
		n++
	}
	return &chat.Message{Number: n}, nil
}

// Watch sends the number of messages that the request asks for.
func (c *chatter) Watch(ctx context.Context, m *chat.Message, s *rpc.ServerStreamingServer[chat.Message]) error {
	if err := c.obey(ctx, m); err != nil {
		return err
	}
	for i := range m.Number {
		if err := s.Send(ctx, &chat.Message{Text: m.Text, Number: i, Blob: m.Blob}); err != nil {
			return err
		}
	}
	return nil
}

func (*chatter) Echo(_ context.Context, m *chat.Message) (*chat.Message, error) { return m, nil }

// openStreams returns a stream client.
func openStreams(t testing.TB, s *rpc.Server, config rpc.StreamConfig) (*rpc.StreamClient, *chat.ChatStreamClient) {
	t.Helper()
	config.Addr = s.Addr().String()
	c, err := rpc.NewStreamClient(config)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { c.Close() })
	return c, chat.NewChatStreamClient(c)
}

// eachNetwork runs a test with the event loop and with TLS, which uses a goroutine for each connection.
func eachNetwork(t *testing.T, test func(t *testing.T, server rpc.ServerConfig, client rpc.StreamConfig)) {
	t.Run("tcp", func(t *testing.T) { test(t, rpc.ServerConfig{}, rpc.StreamConfig{}) })
	t.Run("tls", func(t *testing.T) {
		server, client := testkit.SelfSigned(t, &x509.Certificate{DNSNames: []string{"localhost"}, IPAddresses: []net.IP{net.IPv4(127, 0, 0, 1)}}).Configs()
		test(t, rpc.ServerConfig{TLS: server}, rpc.StreamConfig{TLS: client})
	})
}

// Streams of all modes, with messages of all sizes.
func TestStreams(t *testing.T) {
	eachNetwork(t, func(t *testing.T, server rpc.ServerConfig, client rpc.StreamConfig) {
		s := serve(t, server, chat.NewChatService(newChatter()))
		_, c := openStreams(t, s, client)
		ctx := t.Context()
		sizes := []int{0, 1, 100, 1 << 10, 60 << 10, 64 << 10, 65 << 10, 200 << 10, 10}
		t.Run("bidirectional", func(t *testing.T) {
			st, err := c.Talk(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			for i, size := range sizes {
				sent := &chat.Message{Text: strings.Repeat("x", size), Number: int64(i)}
				if err := st.Send(ctx, sent); err != nil {
					t.Fatal(err)
				}
				if m, err := st.Recv(ctx); err != nil || m.Text != sent.Text || m.Number != sent.Number {
					t.Fatalf("message %d: %v", i, err)
				}
			}
			if err := st.CloseSend(ctx); err != nil {
				t.Error(err)
			}
			for range 2 {
				if m, err := st.Recv(ctx); err != io.EOF {
					t.Errorf("after the end: %v, %v", m, err)
				}
			}
		})
		t.Run("client", func(t *testing.T) {
			st, err := c.Collect(ctx)
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			for range 10 {
				for _, size := range sizes {
					if err := st.Send(ctx, &chat.Message{Blob: make([]byte, size)}); err != nil {
						t.Fatal(err)
					}
				}
			}
			if m, err := st.CloseAndRecv(ctx); err != nil || m.Number != int64(10*len(sizes)) {
				t.Errorf("collected %v, %v", m, err)
			}
		})
		t.Run("server", func(t *testing.T) {
			for _, size := range sizes {
				st, err := c.Watch(ctx, &chat.Message{Number: 100, Blob: make([]byte, size)})
				if err != nil {
					t.Fatal(err)
				}
				n := int64(0)
				for m, err := range st.All(ctx) {
					if err != nil || m.Number != n || len(m.Blob) != size {
						t.Fatalf("message %d: %v, %v", n, m, err)
					}
					n++
				}
				if n != 100 {
					t.Errorf("%d messages", n)
				}
				st.Close()
			}
		})
		noStreams(t, s)
	})
}

// Calls and streams of a service share a port.
func TestCallsBesideStreams(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(newChatter()))
	_, streams := openStreams(t, s, rpc.StreamConfig{})
	client, err := rpc.NewClient(rpc.ClientConfig{Addr: s.Addr().String(), Retries: -1})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	st, err := streams.Talk(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	if m, err := chat.NewChatClient(client).Echo(t.Context(), &chat.Message{Number: 5}); err != nil || m.Number != 5 {
		t.Errorf("a call: %v, %v", m, err)
	}
	err = client.Call(t.Context(), rpc.Invocation{Service: "Chat", Function: &rpc.Function{Name: "talk"}, Args: &chat.ChatTalkArgs{}, Result: &chat.ChatTalkResult{}})
	if e, ok := errors.AsType[*thrift.ApplicationException](err); !ok || e.Kind != thrift.UnknownMethod || !strings.Contains(e.Message, "is a streaming function") {
		t.Errorf("a call of a streaming function: %v", err)
	}
	for _, name := range []string{"echo", "nothing"} {
		plain, err := streams.Opener.Open(t.Context(), &rpc.StreamFunction{Service: "Chat", Name: name})
		if err != nil {
			t.Fatal(err)
		}
		defer plain.Close()
		err = plain.Recv(t.Context(), &chat.Message{})
		if e, ok := errors.AsType[*thrift.ApplicationException](err); !ok || e.Kind != thrift.UnknownMethod || slipstream.OutcomeOf(err) != slipstream.Refused {
			t.Errorf("a stream of %s: %v", name, err)
		}
	}
	if err := st.Send(t.Context(), &chat.Message{Number: 6}); err != nil {
		t.Error(err)
	}
	if m, err := st.Recv(t.Context()); err != nil || m.Number != 6 {
		t.Errorf("the stream: %v, %v", m, err)
	}
}

// The client receives the error that the handler returned after all messages.
func TestErrorsOfStreams(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(newChatter()))
	_, c := openStreams(t, s, rpc.StreamConfig{})
	for text, check := range map[string]func(err error) bool{
		"status sold out": func(err error) bool {
			e, ok := errors.AsType[*rpc.StatusError](err)
			return ok && e.Code == 7 && e.Message == "sold out" && e.Details["a"] == "b"
		},
		"protocol broken": func(err error) bool {
			e, ok := errors.AsType[*thrift.ApplicationException](err)
			return ok && e.Kind == thrift.ProtocolError && e.Message == "broken"
		},
		"fail broken": func(err error) bool {
			e, ok := errors.AsType[*thrift.ApplicationException](err)
			return ok && e.Kind == thrift.InternalError && e.Message == "broken"
		},
		"panic secret": func(err error) bool {
			e, ok := errors.AsType[*thrift.ApplicationException](err)
			return ok && e.Kind == thrift.InternalError && !strings.Contains(e.Message, "secret")
		},
	} {
		t.Run(text, func(t *testing.T) {
			st, err := c.Talk(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			defer st.Close()
			for _, one := range []string{"a", "b", text} {
				if err := st.Send(t.Context(), &chat.Message{Text: one}); err != nil {
					t.Fatal(err)
				}
			}
			for _, want := range []string{"a", "b"} {
				if m, err := st.Recv(t.Context()); err != nil || m.Text != want {
					t.Fatalf("%v, %v", m, err)
				}
			}
			_, err = st.Recv(t.Context())
			if !check(err) || slipstream.OutcomeOf(err) != slipstream.Executed {
				t.Errorf("got %v", err)
			}
			collect, err := c.Collect(t.Context())
			if err != nil {
				t.Fatal(err)
			}
			_ = collect.Send(t.Context(), &chat.Message{Text: text})
			if _, err := collect.CloseAndRecv(t.Context()); !check(err) {
				t.Errorf("collect: %v", err)
			}
			watch, err := c.Watch(t.Context(), &chat.Message{Text: text})
			if err != nil {
				t.Fatal(err)
			}
			defer watch.Close()
			if _, err := watch.Recv(t.Context()); !check(err) {
				t.Errorf("watch: %v", err)
			}
		})
	}
	if n := s.Stats().Panics; n != 3 {
		t.Errorf("%d panics", n)
	}
}

// The metadata and the deadline of a context are sent to the server.
func TestContextsOfStreams(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(newChatter()))
	_, c := openStreams(t, s, rpc.StreamConfig{})
	ctx, cancel := context.WithTimeout(rpc.WithMeta(t.Context(), tenant, user), time.Hour)
	defer cancel()
	st, err := c.Talk(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	for text, want := range map[string]string{"meta": fmt.Sprint([]rpc.Meta{tenant, user}), "deadline": "true true"} {
		if err := st.Send(ctx, &chat.Message{Text: text}); err != nil {
			t.Fatal(err)
		}
		if m, err := st.Recv(ctx); err != nil || m.Text != want {
			t.Errorf("%s: %v, %v, want %s", text, m, err, want)
		}
	}
}

// The handler ends, and receives the cause, when the client's context ends or when the stream or the client is closed.
func TestStreamsEndFromTheClient(t *testing.T) {
	eachNetwork(t, func(t *testing.T, server rpc.ServerConfig, client rpc.StreamConfig) {
		h := newChatter()
		s := serve(t, server, chat.NewChatService(h))
		for name, end := range map[string]func(cancel func(), st *rpc.BidiStreamingClient[chat.Message, chat.Message], c *rpc.StreamClient){
			"cancel": func(cancel func(), _ *rpc.BidiStreamingClient[chat.Message, chat.Message], _ *rpc.StreamClient) {
				cancel()
			},
			"close": func(_ func(), st *rpc.BidiStreamingClient[chat.Message, chat.Message], _ *rpc.StreamClient) {
				st.Close()
			},
			"client": func(_ func(), _ *rpc.BidiStreamingClient[chat.Message, chat.Message], c *rpc.StreamClient) { c.Close() },
		} {
			t.Run(name, func(t *testing.T) {
				all, c := openStreams(t, s, client)
				ctx, cancel := context.WithCancel(t.Context())
				defer cancel()
				st, err := c.Talk(ctx)
				if err != nil {
					t.Fatal(err)
				}
				defer st.Close()
				if err := st.Send(ctx, &chat.Message{Text: "wait"}); err != nil {
					t.Fatal(err)
				}
				<-h.began
				end(cancel, st, all)
				want := rpc.ErrStreamReset
				if name == "client" {
					want = rpc.ErrStreamLost
				}
				if err := <-h.ended; !errors.Is(err, want) {
					t.Errorf("the handler has ended because of %v", err)
				}
				_, err = st.Recv(t.Context())
				if err == nil || err == io.EOF {
					t.Errorf("received %v", err)
				}
			})
		}
	})
}

// A handler whose client has disappeared does not wait forever, even if it neither reads nor writes.
func TestDeadlineOfAStream(t *testing.T) {
	h := newChatter()
	s := serve(t, rpc.ServerConfig{}, chat.NewChatService(h))
	_, c := openStreams(t, s, rpc.StreamConfig{})
	ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
	defer cancel()
	st, err := c.Talk(ctx)
	if err != nil {
		t.Fatal(err)
	}
	defer st.Close()
	_ = st.Send(ctx, &chat.Message{Text: "wait"})
	if _, err := st.Recv(t.Context()); !errors.Is(err, context.DeadlineExceeded) && slipstream.OutcomeOf(err) != slipstream.Executed {
		t.Errorf("received %v", err)
	}
	noStreams(t, s)
}

// Many streams with many messages share a connection; every message reaches its stream, in order.
func TestManyStreams(t *testing.T) {
	eachNetwork(t, func(t *testing.T, server rpc.ServerConfig, client rpc.StreamConfig) {
		s := serve(t, server, chat.NewChatService(newChatter()))
		_, c := openStreams(t, s, client)
		var all sync.WaitGroup
		for i := range 50 {
			all.Go(func() {
				st, err := c.Talk(t.Context())
				if err != nil {
					t.Error(err)
					return
				}
				defer st.Close()
				text := strings.Repeat(string(rune('a'+i%26)), 1+i*50)
				all.Go(func() {
					for n := range int64(200) {
						if err := st.Send(t.Context(), &chat.Message{Text: text, Number: n}); err != nil {
							t.Errorf("stream %d: send %d: %v", i, n, err)
							return
						}
					}
					if err := st.CloseSend(t.Context()); err != nil {
						t.Error(err)
					}
				})
				n := int64(0)
				for m, err := range st.All(t.Context()) {
					if err != nil || m.Number != n || m.Text != text {
						t.Errorf("stream %d: message %d: %v, %v", i, n, m, err)
						return
					}
					n++
				}
				if n != 200 {
					t.Errorf("stream %d: %d messages", i, n)
				}
			})
		}
		all.Wait()
		noStreams(t, s)
	})
}
