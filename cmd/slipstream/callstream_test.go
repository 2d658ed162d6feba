package main

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"io"
	"net"
	"os"
	"os/exec"
	"path/filepath"
	"runtime"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/genericrpc"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// chatIDL returns the path of an IDL with streams.
func chatIDL(t *testing.T) string {
	t.Helper()
	path, err := filepath.Abs("../../thrift/rpc/testdata/chat.thrift")
	if err != nil {
		t.Fatal(err)
	}
	return path
}

// A chat serves chat.thrift without generated code.
type chat struct {
	message *idl.Struct
	waits   chan struct{} // gets a value when a handler begins to wait
	ended   chan error    // gets the cause of its end
	held    chan struct{} // handlers that hold return after it was closed
}

// recv returns the next message.
func (c *chat) recv(ctx context.Context, s *rpc.ServerStream) (text string, number int64, err error) {
	var raw genericrpc.Raw
	if err := s.Recv(ctx, &raw); err != nil {
		return "", 0, err
	}
	values, _, err := generic.Codec{}.Read(raw.Bytes, 0, c.message)
	if err != nil {
		return "", 0, err
	}
	return values["text"].(string), values["number"].(int64), nil
}

func (c *chat) send(ctx context.Context, s *rpc.ServerStream, text string, number int64) error {
	b, err := generic.Codec{}.Append(nil, c.message, map[string]any{"text": text, "number": number})
	if err != nil {
		return err
	}
	return s.Send(ctx, &genericrpc.Raw{Bytes: b})
}

func (c *chat) talk(ctx context.Context, s *rpc.ServerStream) error {
	if err := errors.Join(s.SetHeader(map[string]string{"region": "eu"}), s.SetTrailer(map[string]string{"cost": "7"})); err != nil {
		return err
	}
	for {
		text, number, err := c.recv(ctx, s)
		if err == io.EOF {
			return nil
		}
		if err != nil {
			c.ended <- context.Cause(ctx)
			return err
		}
		switch text {
		case "meta":
			text = ""
			for _, m := range rpc.Received(ctx) {
				text += m.Key + "=" + m.Value + " " + strconv.FormatBool(m.Persistent) + ";"
			}
		case "deadline":
			_, has := ctx.Deadline()
			text = strconv.FormatBool(has)
		case "control":
			if err := s.SetTrailer(map[string]string{"color": "\x1b[31m"}); err != nil {
				return err
			}
		case "status":
			return &rpc.StatusError{Code: 7, Message: "sold out"}
		case "fail":
			return errors.New("broken \x1b[31m")
		case "hold": // its error must not arrive before the client's deadline, which is the same
			<-c.held
			c.ended <- context.Cause(ctx)
			return ctx.Err()
		case "wait":
			c.waits <- struct{}{}
			<-ctx.Done()
			c.ended <- context.Cause(ctx)
			return ctx.Err()
		}
		if err := c.send(ctx, s, text, number); err != nil {
			c.ended <- context.Cause(ctx)
			return err
		}
	}
}

// end returns why a handler of talk has ended before its client has closed the stream.
func (c *chat) end(t *testing.T) error {
	t.Helper()
	select {
	case err := <-c.ended:
		return err
	case <-time.After(time.Minute):
		t.Fatal("the handler was not ended")
		return nil
	}
}

func (c *chat) collect(ctx context.Context, s *rpc.ServerStream) error {
	for n := int64(0); ; n++ {
		switch text, _, err := c.recv(ctx, s); {
		case err == io.EOF:
			return c.send(ctx, s, "", n)
		case err != nil:
			return err
		case text == "none":
			return nil
		case text == "two":
			return errors.Join(c.send(ctx, s, "", 1), c.send(ctx, s, "", 2))
		}
	}
}

func (c *chat) watch(ctx context.Context, s *rpc.ServerStream) error {
	text, number, err := c.recv(ctx, s)
	for i := int64(0); i < number && err == nil; i++ {
		err = c.send(ctx, s, text, i)
	}
	return err
}

// serveChat starts a server and returns its address.
func serveChat(t *testing.T) (string, *chat) {
	t.Helper()
	program, err := idl.Load(idl.Config{}, chatIDL(t))
	if err != nil {
		t.Fatal(err)
	}
	h := &chat{program.Roots[0].Type("Message").(*idl.Struct), make(chan struct{}, 100), make(chan error, 100), make(chan struct{})}
	s, err := rpc.NewServer(rpc.ServerConfig{}, &rpc.Service{Name: "Chat", Methods: []rpc.Method{
		rpc.StreamMethod("talk", h.talk), rpc.StreamMethod("collect", h.collect), rpc.StreamMethod("watch", h.watch), {Name: "echo"},
	}})
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), time.Minute)
		defer cancel()
		_ = s.Shutdown(ctx)
	})
	return s.Addr().String(), h
}

// Streams in all modes, with messages from the command line, a file and the standard input.
//
// mutant: call-stream-messages-in-one-value
func TestCallThriftStreams(t *testing.T) {
	addr, _ := serveChat(t)
	call := func(data, function string, more ...string) []string {
		return append([]string{"-f", chatIDL(t), "-d", data, addr, "Chat." + function}, more...)
	}
	const a, b = `{"text":"a","number":1}` + "\n", `{"text":"b","number":-1}` + "\n"
	expectCall(t, exitOK, a+b, "", call(`{"text": "a", "number": 1} {"text": "b"}`, "talk")...)
	expectCall(t, exitOK, "", "", call("", "talk")...)
	expectCall(t, exitOK, `{"text":"","number":-1}`+"\n", "", "-f", chatIDL(t), addr, "Chat.talk")
	expectCall(t, exitOK, `{"text":"","number":3}`+"\n", "", call("{}{}\n{}", "collect")...)
	expectCall(t, exitOK, `{"text":"x","number":0}`+"\n"+`{"text":"x","number":1}`+"\n", "", call(`{"text": "x", "number": 2}`, "watch")...)
	expectCall(t, exitOK, "", "", call(`{"number": 0}`, "watch")...)
	expectCall(t, exitOK, "{\n  \"text\": \"a\",\n  \"number\": \"1\"\n}\n", "", call(`{"text": "a", "number": 1, "more": 1}`, "talk", "--format", "pretty", "--i64-strings", "--allow-unknown")...)

	file := blackbox.WriteFile(t, "messages.json", a+b)
	expectCall(t, exitOK, a+b, "", call("@"+file, "talk")...)
	if r := callWith(t, a+b+a, call("-", "collect")...); r.Code != exitOK || r.Stdout != `{"text":"","number":3}`+"\n" {
		t.Errorf("standard input: exit %d, %s%s", r.Code, r.Stdout, r.Stderr)
	}

	expectCall(t, exitOK, `{"text":"TENANT=a=b false;TRACE=1 true;","number":-1}`+"\n", "", call(`{"text": "meta"}`, "talk", "-H", "TENANT=a=b", "--meta-persistent", "TRACE=1")...)
	expectCall(t, exitOK, `{"text":"false","number":-1}`+"\n", "", call(`{"text": "deadline"}`, "talk")...)
	expectCall(t, exitOK, `{"text":"true","number":-1}`+"\n", "", call(`{"text": "deadline"}`, "talk", "-t", "50")...)
	// A message that is as large as the largest of a server.
	large := `{"text":"` + strings.Repeat("x", 200<<10) + `","number":1}` + "\n"
	if r := callWith(t, large, call("-", "talk")...); r.Code != exitOK || r.Stdout != large {
		t.Errorf("a large message: exit %d, %d bytes, %s", r.Code, len(r.Stdout), r.Stderr)
	}
}

// The header and the trailer are printed on the standard error.
//
// mutant: call-stream-trailer-is-lost
func TestHeadersOfCallThriftStreams(t *testing.T) {
	addr, _ := serveChat(t)
	const head = "header region: eu\n"
	for data, want := range map[string]struct {
		code           int
		stdout, stderr string
	}{
		`{"text": "a"}`:       {exitOK, `{"text":"a","number":-1}` + "\n", head + "trailer cost: 7\n"},
		`{"text": "control"}`: {exitOK, `{"text":"control","number":-1}` + "\n", head + "trailer color: \\x1b[31m\ntrailer cost: 7\n"},
		`{"text": "status"}`:  {exitFailure, "", head + "trailer cost: 7\nslipstream: "},
	} {
		r := callWith(t, "", "-f", chatIDL(t), "-v", "-d", data, addr, "Chat.talk")
		if r.Code != want.code || r.Stdout != want.stdout || !strings.HasPrefix(r.Stderr, want.stderr) {
			t.Errorf("%s: exit %d\nstdout: %s\nstderr: %s", data, r.Code, r.Stdout, r.Stderr)
		}
	}
	expectCall(t, exitOK, "", "trailer cost: 7", "-f", chatIDL(t), "-v", "-d", "", addr, "Chat.talk")
}

// Each end of a stream has the exit code that it has with a call.
//
// mutant: call-stream-one-response
// mutant: call-stream-mistake-is-unreachable
func TestExitCodesOfStreams(t *testing.T) {
	addr, h := serveChat(t)
	free := "127.0.0.1:" + strconv.Itoa(testkit.FreePort(t))
	run := func(code int, stdout, stderr, data, function string, more ...string) {
		t.Helper()
		expectCall(t, code, stdout, stderr, append([]string{"-f", chatIDL(t), "-d", data, addr, "Chat." + function}, more...)...)
	}
	const a = `{"text":"a","number":-1}` + "\n"
	run(exitFailure, "", "status 7: sold out (executed)", `{"text": "status"}`, "talk")
	run(exitFailure, a, `internal error: broken \x1b[31m (executed)`, `{"text": "a"} {"text": "fail"}`, "talk")
	run(exitFailure, "", "the stream ended without a response", `{"text": "none"}`, "collect")
	run(exitFailure, `{"text":"","number":1}`+"\n", "the stream has more than one response", `{"text": "two"}`, "collect")
	run(exitUnanswered, "", "deadline", `{"text": "hold"}`, "talk", "-t", "2s")
	close(h.held)
	if err := h.end(t); err == nil {
		t.Error("the handler has ended without a cause")
	}
	run(exitUsage, "", "--data has several messages; the function watch has no stream of requests, and expects one", "{} {}", "watch")
	run(exitUsage, "", "--data has no messages; the function watch", "", "watch")
	expectCall(t, exitUnreachable, "", "hint: is a Thrift server listening there", "-f", chatIDL(t), free, "Chat.talk")

	// A mistake in a message ends the stream. The server need not have received those before it.
	for data, want := range map[string]string{
		`{"text": 1}`:  "message 1 of --data: talk: thrift: JSON: field text: expected a string, found a number",
		`{} {} [`:      "message 3 of --data: unexpected EOF",
		`{"Text": ""}`: "message 1 of --data: talk: thrift: JSON: field Text: Message has no field with this name",
	} {
		r := callWith(t, "", "-f", chatIDL(t), "-d", data, addr, "Chat.talk")
		if r.Code != exitUsage || !strings.Contains(r.Stderr, want) {
			t.Errorf("%s: exit %d, %s", data, r.Code, r.Stderr)
		}
	}
}

// A function is called with a stream if the IDL says so, and errors say what does not fit.
func TestStreamsAndCallsAreToldApart(t *testing.T) {
	addr, _ := serveChat(t)
	other := blackbox.WriteFile(t, "other.thrift", `struct Message { 1: string text }
service Chat { Message talk(1: Message message), Message echo(1: Message message) (streaming.mode = "server"), Message odd(1: Message m) (streaming.mode = "sometimes"), i32 number(1: Message m) (streaming.mode = "client") }`)
	expectCall(t, exitUsage, "", "--transport framed with a streaming function; expected ttheader", "-f", chatIDL(t), "--transport", "framed", addr, "Chat.talk")
	expectCall(t, exitUsage, "", "--protocol compact with a streaming function; expected binary", "-f", chatIDL(t), "--protocol", "compact", addr, "Chat.talk")
	expectCall(t, exitUsage, "", "--verbose with Chat.echo, which is not a streaming function", "-f", chatIDL(t), "-v", addr, "Chat.echo")
	expectCall(t, exitUsage, "", "--data has several values; Chat.echo is not a streaming function and expects one", "-f", chatIDL(t), "-d", "{} {}", addr, "Chat.echo")
	expectCall(t, exitUsage, "", `the annotation streaming.mode of Chat.odd is "sometimes"; expected bidirectional, client, server or unary`, "-f", other, addr, "Chat.odd")
	expectCall(t, exitUsage, "", "Chat.number is a streaming function; expected one argument and a result that are structs", "-f", other, addr, "Chat.number")
	// The IDL of the server is another one.
	expectCall(t, exitFailure, "", "talk is a streaming function; open a stream to call it", "-f", other, addr, "Chat.talk")
	expectCall(t, exitFailure, "", "the function echo is not a streaming function", "-f", other, addr, "Chat.echo")
}

// started is a command that runs.
type started struct {
	*exec.Cmd
	in     io.WriteCloser
	out    *bufio.Reader
	stderr bytes.Buffer
}

func startCall(t *testing.T, args ...string) *started {
	t.Helper()
	c := &started{Cmd: exec.CommandContext(t.Context(), blackbox.Program(), append([]string{"call", "thrift"}, args...)...)}
	var err error
	if c.in, err = c.StdinPipe(); err != nil {
		t.Fatal(err)
	}
	out, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	c.out, c.Stderr = bufio.NewReader(out), &c.stderr
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	return c
}

// Each message is sent as soon as it is complete, and each answer printed before the next message is read.
//
// mutant: call-stream-reads-the-whole-input
func TestInteractiveStreams(t *testing.T) {
	addr, _ := serveChat(t)
	c := startCall(t, "-f", chatIDL(t), "-d", "-", addr, "Chat.talk")
	for i := range int64(5) {
		line := `{"text":"` + strings.Repeat("x", int(i)) + `","number":` + strconv.FormatInt(i, 10) + "}\n"
		if _, err := io.WriteString(c.in, line); err != nil {
			t.Fatal(err)
		}
		if got, err := c.out.ReadString('\n'); err != nil || got != line {
			t.Fatalf("message %d: %q, %v\n%s", i, got, err, &c.stderr)
		}
	}
	if err := c.in.Close(); err != nil {
		t.Fatal(err)
	}
	if rest, err := io.ReadAll(c.out); err != nil || len(rest) > 0 {
		t.Errorf("after the end: %q, %v", rest, err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("%v\n%s", err, &c.stderr)
	}
}

// A signal cancels the stream at the server, while the command waits for the server or for its input.
//
// mutant: call-stream-reset-is-not-sent
func TestInterruptedStreams(t *testing.T) {
	if runtime.GOOS == "windows" {
		t.Skip("no process can send the signal there")
	}
	addr, h := serveChat(t)
	c := startCall(t, "-f", chatIDL(t), "-d", "-", addr, "Chat.talk")
	if _, err := io.WriteString(c.in, `{"text": "wait"}`); err != nil {
		t.Fatal(err)
	}
	select {
	case <-h.waits:
	case <-time.After(time.Minute):
		t.Fatal("the message has not arrived")
	}
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := h.end(t); !errors.Is(err, rpc.ErrStreamReset) {
		t.Errorf("the handler has ended because of %v", err)
	}
	err := c.Wait()
	if exit, ok := errors.AsType[*exec.ExitError](err); !ok || exit.ExitCode() != exitInterrupted {
		t.Errorf("%v\n%s", err, &c.stderr)
	}
}

// A server that accepts and never answers is given up at the deadline.
func TestStreamsOfASilentServer(t *testing.T) {
	l, err := net.Listen("tcp", "127.0.0.1:0")
	if err != nil {
		t.Fatal(err)
	}
	defer l.Close()
	expectCall(t, exitUnanswered, "", "maybe executed", "-f", chatIDL(t), "-v", "-t", "2s", l.Addr().String(), "Chat.talk")
}

// counted counts the bytes that are read.
type counted struct {
	io.Reader
	read int
}

func (c *counted) Read(b []byte) (int, error) {
	n, err := c.Reader.Read(b)
	c.read += n
	return n, err
}

// The command stops reading its input when a message exceeds the maximum size.
//
// mutant: call-stream-messages-without-bound
func TestMessagesOfStreamsAreBounded(t *testing.T) {
	endless := &counted{Reader: spaces{}}
	m, err := openMessages(io.MultiReader(strings.NewReader("{} {}"), endless), "-")
	if err != nil {
		t.Fatal(err)
	}
	for range 2 {
		if text, err := m.next(); err != nil || string(text) != "{}" {
			t.Fatalf("%s, %v", text, err)
		}
	}
	if _, err := m.next(); err == nil || !strings.Contains(err.Error(), "the standard input has a message of more than 67108864 bytes") {
		t.Error(err)
	}
	if endless.read > maxArguments+1<<20 {
		t.Errorf("%d bytes were read for a message", endless.read)
	}
	if _, err := openMessages(nil, "@none.json"); err == nil || !strings.Contains(err.Error(), "none.json") {
		t.Error(err)
	}
}
