package genericrpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/internal/chat"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// chatter is a handler with generated code, which the generic client must understand.
type chatter struct{}

func (chatter) Talk(ctx context.Context, s *rpc.BidiStreamingServer[chat.Message, chat.Message]) error {
	if err := errors.Join(s.SetHeader(map[string]string{"a": "1"}), s.SetTrailer(map[string]string{"b": "2"})); err != nil {
		return err
	}
	for m, err := range s.All(ctx) {
		if err != nil {
			return err
		}
		if err := s.Send(ctx, m); err != nil {
			return err
		}
	}
	return nil
}

func (chatter) Collect(ctx context.Context, s *rpc.ClientStreamingServer[chat.Message]) (*chat.Message, error) {
	all := new(chat.Message)
	for m, err := range s.All(ctx) {
		if err != nil {
			return nil, err
		}
		all.Text += m.Text
		all.Number++
	}
	if all.Text == "status" {
		return nil, &rpc.StatusError{Code: 7, Message: "sold out"}
	}
	return all, nil
}

func (chatter) Watch(ctx context.Context, m *chat.Message, s *rpc.ServerStreamingServer[chat.Message]) error {
	for i := range m.Number {
		if err := s.Send(ctx, &chat.Message{Text: m.Text, Number: i}); err != nil {
			return err
		}
	}
	return nil
}

func (chatter) Echo(_ context.Context, m *chat.Message) (*chat.Message, error) { return m, nil }

// chatService returns the service of chat.thrift.
func chatService(t testing.TB) *idl.Service {
	t.Helper()
	p, err := idl.Load(idl.Config{}, "../rpc/testdata/chat.thrift")
	if err != nil {
		t.Fatal(err)
	}
	return p.Roots[0].Service("Chat")
}

// openChat returns a generic client of the streams of a server.
func openChat(t testing.TB, server *rpc.Service, config genericrpc.Config) *genericrpc.StreamClient {
	t.Helper()
	opener, err := rpc.NewStreamClient(rpc.StreamConfig{Addr: serve(t, server)})
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { opener.Close() })
	c, err := genericrpc.NewStreamClient(opener, chatService(t), config)
	if err != nil {
		t.Fatal(err)
	}
	return c
}

// exchanged opens a stream, sends messages, and returns what was received, and the error at the end.
func exchanged(t testing.TB, c *genericrpc.StreamClient, function string, messages ...string) (all []string, s *genericrpc.Stream, err error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), patience)
	t.Cleanup(cancel)
	if s, err = c.Open(ctx, function); err != nil {
		return nil, nil, err
	}
	t.Cleanup(s.Close)
	for _, m := range messages {
		if err := s.Send(ctx, []byte(m)); err != nil {
			return nil, s, err
		}
	}
	if err := s.CloseSend(ctx); err != nil {
		return nil, s, err
	}
	for {
		text, err := s.Recv(ctx)
		if err != nil {
			return all, s, err
		}
		all = append(all, string(text))
	}
}

// Messages in JSON are those of handlers with generated code, in all modes.
//
// mutant: genericrpc-stream-two-requests
func TestMessagesOfModes(t *testing.T) {
	c := openChat(t, chat.NewChatService(chatter{}), genericrpc.Config{})
	for _, test := range []struct {
		function string
		messages []string
		want     string
		end      string
	}{
		{"talk", []string{`{"text":"a","number":1,"blob":"AAE="}`, `{}`}, `[{"text":"a","number":1,"blob":"AAE="} {"text":"","number":-1}]`, "EOF"},
		{"talk", nil, `[]`, "EOF"},
		{"collect", []string{`{"text":"a"}`, `{"text":"b"}`}, `[{"text":"ab","number":2}]`, "EOF"},
		{"collect", []string{`{"text":"status"}`}, `[]`, "status 7: sold out (executed)"},
		{"watch", []string{`{"text":"a","number":2}`}, `[{"text":"a","number":0} {"text":"a","number":1}]`, "EOF"},
		{"watch", nil, `[]`, "the stream has no request"},
		{"watch", []string{`{}`, `{}`}, `[]`, "takes one request, which has already been sent (not sent)"},
		{"talk", []string{`{"text":1}`}, `[]`, "field text: expected a string, found a number, at byte 9 (not sent)"},
		{"talk", []string{`{"Text":""}`}, `[]`, "field Text: Message has no field with this name"},
	} {
		all, _, err := exchanged(t, c, test.function, test.messages...)
		if fmt.Sprint(all) != test.want || err == nil || !strings.HasSuffix(err.Error(), test.end) && !strings.Contains(err.Error(), test.end) || test.end == "EOF" && err != io.EOF {
			t.Errorf("%s %v: %v, %v; want %s, %s", test.function, test.messages, all, err, test.want, test.end)
		}
	}
	_, s, _ := exchanged(t, c, "talk", "{}")
	if header, err := s.Header(t.Context()); err != nil || header["a"] != "1" || s.Trailer()["b"] != "2" {
		t.Errorf("the header is %v, %v, and the trailer %v", header, err, s.Trailer())
	}
	// After a message that is wrong, the stream continues.
	s, err := c.Open(t.Context(), "talk")
	if err != nil {
		t.Fatal(err)
	}
	defer s.Close()
	if err := s.Send(t.Context(), []byte("[]")); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("a list as a message: %v", err)
	}
	if err := s.Send(t.Context(), []byte("{}")); err != nil {
		t.Fatal(err)
	}
	if text, err := s.Recv(t.Context()); err != nil || string(text) != `{"text":"","number":-1}` {
		t.Errorf("%s, %v", text, err)
	}
	options := openChat(t, chat.NewChatService(chatter{}), genericrpc.Config{AllowUnknown: true, JSON: thrift.JSON{I64Strings: true}})
	if all, _, err := exchanged(t, options, "talk", `{"number":5,"more":1}`); err != io.EOF || fmt.Sprint(all) != `[{"text":"","number":"5"}]` {
		t.Errorf("%v, %v", all, err)
	}
}

// Functions without streams, functions whose messages are not structs, and the Compact protocol are refused.
//
// mutant: genericrpc-stream-compact
// mutant: genericrpc-streams-are-called
func TestStreamsThatAreRefused(t *testing.T) {
	c := openChat(t, chat.NewChatService(chatter{}), genericrpc.Config{})
	bad := service(t, `struct M {} union U { 1: i32 n } typedef M N
service S { M ok(1: N m) (streaming.mode = "client"), i32 number(1: M m) (streaming.mode = "client"), void nothing(1: M m) (streaming.mode = "server"), M two(1: M a, 2: M b) (streaming.mode = "server"), M odd(1: M m) (streaming.mode = "x"), M unary(1: M m) (streaming.mode = "unary") }`)
	for name, want := range map[string]string{"ok": "", "unary": "", "number": "S.number is a streaming function; expected one argument and a result that are structs", "nothing": "expected one", "two": "expected one", "odd": `is "x"; expected bidirectional`} {
		if _, _, _, err := genericrpc.Messages(bad.Function(name)); want == "" && err != nil || want != "" && (err == nil || !strings.Contains(err.Error(), want)) {
			t.Errorf("%s: %v; want %q", name, err, want)
		}
	}
	for name, want := range map[string]string{"echo": "Chat.echo is not a streaming function; call it with a Client", "tlk": "the service Chat has no function \"tlk\"; did you mean talk?"} {
		if _, err := c.Open(t.Context(), name); err == nil || !strings.Contains(err.Error(), want) || slipstream.OutcomeOf(err) != slipstream.NotSent {
			t.Errorf("%s: %v", name, err)
		}
	}
	if _, err := genericrpc.NewStreamClient(nil, chatService(t), genericrpc.Config{Compact: true}); err == nil {
		t.Error("the Compact protocol was accepted")
	}
	if _, err := genericrpc.NewStreamClient(nil, nil, genericrpc.Config{}); err == nil {
		t.Error("no service was accepted")
	}
	calls, err := genericrpc.NewClient(canned{false, func([]byte) []byte { return nil }}, chatService(t), genericrpc.Config{})
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"talk", "collect", "watch"} {
		if _, err := calls.Call(t.Context(), name, []byte("{}")); err == nil || !strings.Contains(err.Error(), "is a streaming function; open a stream with a StreamClient") {
			t.Errorf("a call of %s: %v", name, err)
		}
	}
}

// Messages that do not match the function are errors with the outcome Executed.
func TestHostileMessages(t *testing.T) {
	reply := make(chan []byte, 1)
	c := openChat(t, &rpc.Service{Name: "Chat", Methods: []rpc.Method{rpc.StreamMethod("watch", func(ctx context.Context, s *rpc.ServerStream) error {
		return s.Send(ctx, &genericrpc.Raw{Bytes: <-reply})
	})}}, genericrpc.Config{})
	for _, bad := range [][]byte{
		{thrift.TypeString, 0, 1, 0x7F, 0xFF, 0xFF, 0xFF, 0}, // a length that exceeds the message
		{thrift.TypeString, 0, 1, 0, 0, 0, 1, 'x'},           // no end
	} {
		reply <- bad
		all, _, err := exchanged(t, c, "watch", "{}")
		if len(all) > 0 || err == nil || slipstream.OutcomeOf(err) != slipstream.Executed {
			t.Errorf("% x: %v, %v", bad, all, err)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Millisecond)
	defer cancel()
	<-ctx.Done()
	if _, err := c.Open(ctx, "watch"); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("after the deadline: %v", err)
	}
}
