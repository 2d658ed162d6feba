package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/frame"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// A server answers in the transport and the protocol of each call.
func TestCallsInAllFormats(t *testing.T) {
	h := new(calculator)
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(h))
	eachFormat(t, func(t *testing.T, f frame.Format) {
		p := dial(t, s, f)
		var sum calc.CalculatorAddResult
		p.send("add", 1, &calc.CalculatorAddArgs{A: 40, B: 2})
		if p.reply(1, &sum); sum.Success.V != 42 || !sum.Success.Set {
			t.Errorf("sum %+v", sum)
		}
		// Declared exceptions are fields of the result.
		sum.Reset()
		p.send("add", -2, &calc.CalculatorAddArgs{A: 1 << 30, B: 1 << 30})
		if p.reply(-2, &sum); sum.Overflow == nil || sum.Overflow.What != "2147483648" || sum.Success.Set {
			t.Errorf("overflow %+v", sum)
		}
		var moved calc.CalculatorMoveResult
		p.send("move", 3, &calc.CalculatorMoveArgs{Point: &calc.Point{X: 1, Y: 1, Note: thrift.Some("n"), Blob: []byte("blob")}, By: []calc.Point{{X: 2, Y: 3}, {X: 4, Y: 5}}})
		if p.reply(3, &moved); moved.Success == nil || moved.Success.X != 7 || moved.Success.Y != 9 || moved.Success.Note.V != "n" || string(moved.Success.Blob) != "blob" {
			t.Errorf("moved %+v", moved.Success)
		}
		// An empty list is a result.
		var numbers calc.CalculatorNumbersResult
		p.send("numbers", 4, &calc.CalculatorNumbersArgs{})
		if p.reply(4, &numbers); numbers.Success == nil || len(numbers.Success) != 0 {
			t.Errorf("numbers %v", numbers.Success)
		}
		// A function of the base service that returns nothing.
		p.send("ping", 5, &calc.BasePingArgs{})
		p.reply(5, &calc.BasePingResult{})
		// A nil struct counts as absent.
		p.send("move", 6, &calc.CalculatorMoveArgs{})
		if _, e := p.exception(6); e.Kind != thrift.MissingResult {
			t.Errorf("without a result: %v", e)
		}
		p.send("nothing", 7, &calc.BasePingArgs{})
		if _, e := p.exception(7); e.Kind != thrift.UnknownMethod || !strings.Contains(e.Message, "nothing") || !strings.Contains(e.Message, "Calculator") {
			t.Errorf("an unknown function: %v", e)
		}
		before := h.forgotten.Load()
		if _, err := p.Write(p.encode("forget", thrift.Oneway, 8, &calc.CalculatorForgetArgs{ID: 5})); err != nil {
			t.Fatal(err)
		}
		p.send("forget", 9, &calc.CalculatorForgetArgs{ID: 6}) // as Apache's Go client does
		p.send("ping", 10, &calc.BasePingArgs{})
		p.reply(10, &calc.BasePingResult{}) // a oneway call is not answered
		if n := h.forgotten.Load() - before; n != 11 {
			t.Errorf("%d was forgotten, want 11", n)
		}
	})
}

// Messages of any allowed size are served, however their bytes arrive.
func TestLargeCalls(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(new(calculator)))
	eachFormat(t, func(t *testing.T, f frame.Format) {
		p := dial(t, s, f)
		for i, size := range []int{60 << 10, 64 << 10, 70 << 10, 1 << 20, 5 << 20} {
			text := strings.Repeat("x", size)
			b := p.encode("echo", thrift.Call, int32(i), &calc.CalculatorEchoArgs{Text: text})
			go func() { // ends with the connection
				for part := range slices.Chunk(b, 100<<10) {
					if _, err := p.Write(part); err != nil {
						return
					}
				}
			}()
			var r calc.CalculatorEchoResult
			if p.reply(int32(i), &r); r.Success.V != text {
				t.Errorf("%d bytes: got %d", size, len(r.Success.V))
			}
		}
	})
}

// Two calls in one write, and a call byte by byte.
func TestCallsInPieces(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(new(calculator)))
	eachFormat(t, func(t *testing.T, f frame.Format) {
		p := dial(t, s, f)
		b := p.encode("add", thrift.Call, 1, &calc.CalculatorAddArgs{A: 1})
		b = append(b, p.encode("add", thrift.Call, 2, &calc.CalculatorAddArgs{A: 2})...)
		if _, err := p.Write(b); err != nil {
			t.Fatal(err)
		}
		var r calc.CalculatorAddResult
		for seq := range int32(2) {
			if p.reply(seq+1, &r); r.Success.V != seq+1 {
				t.Errorf("got %d", r.Success.V)
			}
		}
		for i := range b {
			if _, err := p.Write(b[i : i+1]); err != nil {
				t.Fatal(err)
			}
		}
		p.reply(1, &r)
		p.reply(2, &r)
	})
}

// Undeclared errors become exceptions, and the connection stays open.
func TestErrorsOfHandlers(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(new(calculator)))
	eachFormat(t, func(t *testing.T, f frame.Format) {
		p := dial(t, s, f)
		for i, row := range []struct {
			how  string
			kind int32
			text string
		}{
			{"broken", thrift.InternalError, "broken"},
			{"panic secret", thrift.InternalError, "the handler of fail panicked"},
			{"protocol odd", thrift.ProtocolError, "odd"},
			{"refuse it", thrift.InternalError, ""},
		} {
			p.send("fail", int32(i), &calc.CalculatorFailArgs{How: row.how})
			if _, e := p.exception(int32(i)); e.Kind != row.kind || !strings.Contains(e.Message, row.text) || strings.Contains(e.Message, "secret") {
				t.Errorf("%s: %v", row.how, e)
			}
		}
		for _, kind := range []string{"status", "kitex"} {
			p.send("fail", 9, &calc.CalculatorFailArgs{How: kind + " sold out"})
			if !f.HasHeader() {
				if _, e := p.exception(9); e.Kind != thrift.InternalError || !strings.Contains(e.Message, "sold out") {
					t.Errorf("a status (%s) without a header: %v", kind, e)
				}
				continue
			}
			a, err := p.next()
			if err != nil {
				t.Fatal(err)
			}
			if string(a.info.String("biz-status")) != "7" || string(a.info.String("biz-message")) != "sold out" || string(a.info.String("biz-extra")) != `{"a":"b"}` || a.Type != thrift.Reply {
				t.Errorf("a status (%s): %+v", kind, a)
			}
		}
	})
	if st := s.Stats(); st.Panics != uint64(len(formats)) {
		t.Errorf("%d panics were counted, want %d", st.Panics, len(formats))
	}
}

// A message that is not a call ends the connection, after the answers to earlier
// calls.
func TestWhatIsNoCall(t *testing.T) {
	s := serve(t, rpc.ServerConfig{MaxMessage: 1 << 20}, calc.NewCalculatorService(new(calculator)))
	for _, bad := range []string{"GET / HTTP/1.1\r\nHost: a\r\n\r\n", "\x16\x03\x01\x02\x00\x01", "\x00\x20\x00\x00\x80\x01\x00\x01", "\x80\x01\x00\x02\x00\x00\x00\x00\x00\x00\x00\x00\x00",
		"\x80\x01\x00\x01\x00\x00\x00\x04echo\x00\x00\x00\x00\x0b\x00\x01\x7f\xff\xff\xff", "\x00\x00\x00\x10\x0f\xff\x00\x00"} {
		p := dial(t, s, frame.Format{})
		p.send("ping", 1, &calc.BasePingArgs{})
		if _, err := io.WriteString(p, bad); err != nil {
			t.Fatal(err)
		}
		p.reply(1, &calc.BasePingResult{})
		p.ended()
	}
	p := dial(t, s, frame.Format{Transport: frame.Header})
	p.anyOrder = true // the server continues to read while a call runs
	if _, err := p.Write(append(p.encode("echo", thrift.Call, 1, &calc.CalculatorEchoArgs{Text: "x"}), "\x80\x02\x00\x00"...)); err != nil {
		t.Fatal(err)
	}
	p.reply(1, &calc.CalculatorEchoResult{})
	p.ended()
	if n := s.Stats().Malformed; n != 7 {
		t.Errorf("%d messages were malformed, want 7", n)
	}
	// For arguments that cannot be decoded, the server returns an exception and continues with the next message.
	eachFormat(t, func(t *testing.T, f frame.Format) {
		p := dial(t, s, f)
		p.send("move", 1, &calc.CalculatorEchoArgs{Text: "x"})            // another type is skipped
		p.send("move", 2, &calc.CalculatorMoveArgs{Point: &calc.Point{}}) // all fields are present
		_, _ = p.exception(1)
		p.reply(2, &calc.CalculatorMoveResult{})
	})
}

// An answer that is too large is replaced by an exception.
func TestLargeAnswers(t *testing.T) {
	s := serve(t, rpc.ServerConfig{MaxMessage: 1 << 20}, calc.NewCalculatorService(new(calculator)))
	eachFormat(t, func(t *testing.T, f frame.Format) {
		p := dial(t, s, f)
		var r calc.CalculatorNumbersResult
		p.send("numbers", 1, &calc.CalculatorNumbersArgs{Count: 100_000})
		if p.reply(1, &r); len(r.Success) != 100_000 || r.Success[99_999] != 99_999 {
			t.Errorf("%d numbers", len(r.Success))
		}
		p.send("numbers", 2, &calc.CalculatorNumbersArgs{Count: 1_000_000})
		if _, e := p.exception(2); e.Kind != thrift.InternalError || !strings.Contains(e.Message, "the limit is 1048576") {
			t.Errorf("a large answer: %v", e)
		}
	})
}

// Handlers that run on the event loop answer in order, and their panics are recovered.
func TestInlineHandlers(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(new(calculator)).Inline())
	eachFormat(t, func(t *testing.T, f frame.Format) {
		p := dial(t, s, f)
		for seq := range int32(100) {
			p.send("add", seq, &calc.CalculatorAddArgs{A: seq})
		}
		var r calc.CalculatorAddResult
		for seq := range int32(100) {
			if p.reply(seq, &r); r.Success.V != seq {
				t.Fatalf("got %d, want %d", r.Success.V, seq)
			}
		}
		p.send("fail", 1, &calc.CalculatorFailArgs{How: "panic"})
		_, _ = p.exception(1)
	})
	defer func() {
		if recover() == nil {
			t.Error("a function that does not exist is inline")
		}
	}()
	calc.NewClockService(clock{}).Inline("later")
}

// At Shutdown, clients of this package that allow any order are notified by a separate message, other clients by their
// next answer: in its header, or in a field of its struct. Calls that have arrived are answered.
func TestShutdown(t *testing.T) {
	h := &calculator{gate: make(chan struct{})}
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(h))
	mux, header, framed := dial(t, s, frame.Format{Transport: frame.Header}), dial(t, s, frame.Format{Transport: frame.HeaderFramed}), dial(t, s, frame.Format{Transport: frame.Framed})
	mux.anyOrder, mux.keys = true, []string{"slipstream-any-order", "1"}
	kitex := dial(t, s, frame.Format{Transport: frame.Header})
	kitex.anyOrder = true
	compact, buffered := dial(t, s, frame.Format{Transport: frame.Framed, Compact: true}), dial(t, s, frame.Format{})
	all := []*peer{mux, kitex, header, framed, compact, buffered}
	for _, p := range all {
		p.send("fail", 1, &calc.CalculatorFailArgs{How: "wait"})
	}
	testkit.Eventually(t, patience, func() error {
		if n := h.running.Load(); n != int64(len(all)) {
			return fmt.Errorf("%d calls run, want %d", n, len(all))
		}
		return nil
	})
	ended := make(chan error, 1)
	go func() { // ends with Shutdown, which the test waits for
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		ended <- s.Shutdown(ctx)
	}()
	mux.control("slipstream-any-order")
	a, err := mux.next()
	if err != nil || a.Seq != 0 || a.info.Seq != 0 || string(a.Name) != "none" || string(a.info.String("crrst")) != "1" {
		t.Errorf("got %+v, %v; want a message that says that the connection will be closed", a, err)
	}
	close(h.gate)
	for _, p := range all {
		a, err := p.next()
		if err != nil {
			t.Fatal(err)
		}
		if told := string(a.info.String("crrst")) == "1"; a.Type != thrift.Reply || told != p.format.HasHeader() {
			t.Errorf("%v: got %+v", p.format, a)
		}
		if goodbye := slices.ContainsFunc(goodbyes, func(b string) bool { return string(a.result) == b }); goodbye == p.format.HasHeader() {
			t.Errorf("%v: the result is %q", p.format, a.result)
		}
		p.decode(a, &calc.CalculatorFailResult{})
		p.ended()
		p.Close()
	}
	if err := <-ended; err != nil {
		t.Error(err)
	}
	if st := s.Stats(); st.Connections != 0 || st.Calls != 0 || st.Done != uint64(len(all)) {
		t.Errorf("after Shutdown: %+v", st)
	}
}

// A client that makes its first call during a shutdown is notified too, once.
func TestFirstCallDuringShutdown(t *testing.T) {
	s := serve(t, rpc.ServerConfig{DrainGrace: time.Hour}, calc.NewCalculatorService(new(calculator)))
	small, large := dial(t, s, frame.Format{Transport: frame.Header}), dial(t, s, frame.Format{Transport: frame.Header})
	testkit.Eventually(t, patience, func() error {
		if n := s.Stats().Connections; n != 2 {
			return fmt.Errorf("%d connections, want 2", n)
		}
		return nil
	})
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(ctx) }() // ends with ctx
	testkit.Eventually(t, patience, func() error {
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			return nil
		}
		c.Close()
		return errors.New("the server listens")
	})
	for p, text := range map[*peer]string{small: "x", large: strings.Repeat("x", 100<<10)} {
		p.anyOrder, p.keys = true, []string{"slipstream-any-order", "1"}
		for seq := range int32(2) {
			p.send("echo", seq+1, &calc.CalculatorEchoArgs{Text: text})
			if seq == 0 {
				p.control("slipstream-any-order")
				p.control("crrst")
			}
			var r calc.CalculatorEchoResult
			if p.reply(seq+1, &r); r.Success.V != text {
				t.Errorf("%d bytes, want %d", len(r.Success.V), len(text))
			}
		}
		p.Close()
	}
	cancel()
	if err := <-ended; err != nil && !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// goodbyes holds the field by which an answer without a header announces the server's shutdown, and the end of the
// struct: a bool with ID 32767 in the Binary and in the Compact protocol.
var goodbyes = []string{"\x02\x7f\xff\x01\x00", "\x01\xfe\xff\x03\x00"}

// A Unix socket is served like a port.
func TestUnixSocket(t *testing.T) {
	s, err := rpc.NewServer(rpc.ServerConfig{}, calc.NewCalculatorService(new(calculator)))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("unix", filepath.Join(t.TempDir(), "s")); err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	if err := s.Listen("unix", filepath.Join(t.TempDir(), "t")); !errors.Is(err, rpc.ErrServing) {
		t.Errorf("a second Listen: %v", err)
	}
	p := dial(t, s, frame.Format{Transport: frame.Framed})
	p.send("ping", 1, &calc.BasePingArgs{})
	p.reply(1, &calc.BasePingResult{})
}

// Handlers can get the client and the metadata of a call; OnCall is called for each call.
func TestWhatHandlersSee(t *testing.T) {
	h := new(calculator)
	type sight struct {
		peer rpc.Peer
		meta []rpc.Meta
	}
	seen := make(chan sight, 1)
	h.seen = func(ctx context.Context) {
		p, _ := rpc.PeerOf(ctx)
		seen <- sight{p, rpc.Received(ctx)}
	}
	reports := make(chan rpc.CallReport, 10)
	s := serve(t, rpc.ServerConfig{OnCall: func(r rpc.CallReport) {
		reports <- r
		panic("contained")
	}}, calc.NewCalculatorService(h))
	p := dial(t, s, frame.Format{Transport: frame.Header})
	p.keys = []string{"RPC_PERSIST_TENANT", "a", "RPC_TRANSIT_USER", "b", "other", "c"}
	p.send("ping", 1, &calc.BasePingArgs{})
	p.reply(1, &calc.BasePingResult{})
	got := <-seen
	if got.peer.Addr.String() != p.LocalAddr().String() || got.peer.TLS != nil || !slices.Equal(got.meta, []rpc.Meta{{Key: "TENANT", Value: "a", Persistent: true}, {Key: "USER", Value: "b"}}) {
		t.Errorf("the handler saw %+v", got)
	}
	if r := <-reports; r.Service != "Calculator" || r.Method != "ping" || r.Name != "ping" || r.Peer != got.peer.Addr || r.Format != "TTHeader, Binary" || r.Err != nil || r.Refused || r.Sent == 0 || r.Received == 0 || r.Took <= 0 {
		t.Errorf("the report is %+v", r)
	}
	p.send("fail", 2, &calc.CalculatorFailArgs{How: "status x"})
	if _, err := p.next(); err != nil {
		t.Fatal(err)
	}
	status, _ := errors.AsType[*rpc.StatusError]((<-reports).Err)
	if status == nil || status.Code != 7 {
		t.Errorf("the report has %v", status)
	}
	p.send("nothing", 3, &calc.BasePingArgs{})
	_, _ = p.exception(3)
	if r := <-reports; r.Service != "" || r.Name != "nothing" || r.Err == nil {
		t.Errorf("the report is %+v", r)
	}
	if _, ok := rpc.PeerOf(t.Context()); ok || rpc.Received(t.Context()) != nil {
		t.Error("a context that is not a handler's has a client")
	}
}

func TestServersNeedServices(t *testing.T) {
	one := calc.NewClockService(clock{})
	for _, services := range [][]*rpc.Service{nil, {one, one}, {{Name: "a", Methods: []rpc.Method{{Name: "x"}, {Name: "x"}}}}} {
		if s, err := rpc.NewServer(rpc.ServerConfig{}, services...); err == nil || s != nil {
			t.Errorf("a server was created for %v", services)
		}
	}
	s, err := rpc.NewServer(rpc.ServerConfig{}, one)
	if err != nil {
		t.Fatal(err)
	}
	if s.Addr() != nil || s.Serve() == nil {
		t.Error("a server without listeners serves")
	}
	if err := s.Shutdown(t.Context()); err != nil {
		t.Error(err)
	}
}
