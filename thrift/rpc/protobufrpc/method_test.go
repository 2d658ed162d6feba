package protobufrpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"google.golang.org/protobuf/proto"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/governance"
	"github.com/slipstream-go/slipstream/thrift/rpc/protobufrpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/protobufrpc/internal/catalog"
)

// Results, statuses and other errors keep their type, with each transport.
func TestCalls(t *testing.T) {
	h := new(products)
	s := serve(t, rpc.ServerConfig{}, h.service())
	for _, transport := range transports {
		t.Run(transport.String(), func(t *testing.T) {
			client := connect(t, rpc.ClientConfig{Addr: s.Addr().String(), Transport: transport, Protobuf: true})
			header := transport <= rpc.TTHeaderFramed
			callEverything(t, client, header, thrift.UnknownMethod)
			if got := client.Stats().AnyOrder; got != header {
				t.Errorf("the server answers in any order: %v", got)
			}
			if _, err := echo.Call(t.Context(), client, &catalog.Text{Text: "nil"}); kindOf(err) != thrift.MissingResult || slipstream.OutcomeOf(err) != slipstream.Executed {
				t.Errorf("no result: %v", err)
			}
			for how, kind := range map[string]int32{"panic x": thrift.InternalError, "protocol odd": thrift.ProtocolError, "negative odd": -5} {
				if _, err := echo.Call(t.Context(), client, &catalog.Text{Text: how}); kindOf(err) != kind {
					t.Errorf("%s: %v", how, err)
				}
			}
			// Other libraries can always decode the text of an exception.
			if _, err := echo.Call(t.Context(), client, &catalog.Text{Text: "invalid"}); err == nil || !strings.Contains(err.Error(), "not UTF-8: \uFFFD") {
				t.Errorf("a text that is not UTF-8: %q", err)
			}
		})
	}
	if stats := s.Stats(); stats.Malformed != 0 {
		t.Errorf("%+v", stats)
	}
}

// noAnswer stands for a server that closes the connection instead of sending an exception.
const noAnswer = -1

// callEverything makes calls that each server answers. unknown is the kind of the exception for an unknown method.
func callEverything(t *testing.T, c rpc.Caller, header bool, unknown int32) {
	t.Helper()
	ctx := t.Context()
	var all sync.WaitGroup
	for i := range int64(10) {
		all.Go(func() {
			for n := range int64(20) {
				id := i<<32 + n
				if got, err := find.Call(ctx, c, &catalog.FindRequest{Id: id}); err != nil || !proto.Equal(got, product(id)) {
					t.Errorf("product %d: %v, %v", id, got, err)
					return
				}
			}
		})
	}
	all.Wait()
	if got, err := echo.Call(ctx, c, nil); err != nil || got.GetText() != "" {
		t.Errorf("no request: %v, %v", got, err)
	}
	for _, size := range []int{0, 1, 60 << 10, 70 << 10, 2 << 20} {
		text := strings.Repeat("x", size)
		if got, err := echo.Call(ctx, c, &catalog.Text{Text: text}); err != nil || got.GetText() != text {
			t.Errorf("echo of %d bytes: %d, %v", size, len(got.GetText()), err)
		}
	}
	if _, err := echo.Call(ctx, c, &catalog.Text{Text: "fail broken"}); kindOf(err) != thrift.InternalError || !strings.Contains(err.Error(), "broken") || slipstream.OutcomeOf(err) != slipstream.Executed {
		t.Errorf("a handler's error: %v", err)
	}
	outcome := slipstream.Refused
	if unknown == noAnswer {
		outcome = slipstream.MaybeExecuted
	}
	if _, err := missing.Call(ctx, c, nil); kindOf(err) != unknown || slipstream.OutcomeOf(err) != outcome {
		t.Errorf("a method that the server does not have: %v", err)
	}
	before, err := forgotten(ctx, c)
	if err != nil {
		t.Fatal(err)
	}
	for range 10 {
		if got, err := forget.Call(ctx, c, &catalog.Text{Text: "12345"}); got != nil || err != nil {
			t.Errorf("a oneway call: %v, %v", got, err)
		}
	}
	testkit.Eventually(t, patience, func() error {
		if n, err := forgotten(ctx, c); n != before+50 || err != nil {
			return fmt.Errorf("%d bytes were forgotten, and %d before; %v", n, before, err)
		}
		return nil
	})
	if header {
		callWithHeader(t, c)
	}
	short, cancel := context.WithTimeout(ctx, time.Nanosecond)
	defer cancel()
	if _, err := echo.Call(short, c, nil); !errors.Is(err, context.DeadlineExceeded) {
		t.Errorf("a call whose deadline has passed: %v", err)
	}
}

// forgotten returns how many bytes the server has forgotten.
func forgotten(ctx context.Context, c rpc.Caller) (n int, err error) {
	got, err := echo.Call(ctx, c, &catalog.Text{Text: "forgotten"})
	if err == nil {
		_, err = fmt.Sscan(got.GetText(), &n)
	}
	return n, err
}

// callWithHeader makes calls that need a header.
func callWithHeader(t *testing.T, c rpc.Caller) {
	t.Helper()
	ctx, cancel := context.WithTimeout(rpc.WithMeta(t.Context(), tenant, user), time.Minute)
	defer cancel()
	got, err := echo.Call(ctx, c, &catalog.Text{Text: "header"})
	left := 0
	if _, bad := fmt.Sscanf(got.GetText(), "a b %d", &left); err != nil || bad != nil || left <= 0 || left > 60_000 {
		t.Errorf("the server has received %q; %v", got.GetText(), err)
	}
	_, err = echo.Call(ctx, c, &catalog.Text{Text: "status sold out"})
	status, ok := errors.AsType[*rpc.StatusError](err)
	if !ok || status.Code != 7 || status.Message != "sold out" || status.Details["a"] != "b" || slipstream.OutcomeOf(err) != slipstream.Executed {
		t.Errorf("a status: %v", err)
	}
}

// One port serves Thrift and Protobuf. Calls in the wrong format are errors, on both sides.
func TestThriftAndProtobuf(t *testing.T) {
	reports := make(chan rpc.CallReport, 100)
	s := serve(t, rpc.ServerConfig{OnCall: func(r rpc.CallReport) { reports <- r }}, new(products).service(), calc.NewClockService(clock{}))
	addr := s.Addr().String()
	ctx := t.Context()
	for _, transport := range transports {
		binary := connect(t, rpc.ClientConfig{Addr: addr, Transport: transport})
		messages := connect(t, rpc.ClientConfig{Addr: addr, Transport: transport, Protobuf: true})
		if !strings.HasSuffix(messages.String(), "Protobuf)") {
			t.Error(messages)
		}
		if now, err := calc.NewClockClient(binary).Now(ctx); now != 17 || err != nil {
			t.Errorf("%v: now %d, %v", transport, now, err)
		}
		if r := <-reports; r.Err != nil || !strings.HasSuffix(r.Format, ", Binary") {
			t.Errorf("%v: %+v", transport, r)
		}
		if got, err := find.Call(ctx, messages, &catalog.FindRequest{Id: 3}); err != nil || got.GetId() != 3 {
			t.Errorf("%v: %v, %v", transport, got, err)
		}
		if r := <-reports; r.Err != nil || r.Service != "Catalog" || r.Method != "Find" || !strings.HasSuffix(r.Format, "ramed, Protobuf") {
			t.Errorf("%v: %+v", transport, r)
		}
		// A client with the other format sends nothing.
		_, err := find.Call(ctx, binary, nil)
		if slipstream.OutcomeOf(err) != slipstream.NotSent || !errors.As(err, new(*rpc.InvalidCallError)) {
			t.Errorf("%v: Protobuf with a Thrift client: %v", transport, err)
		}
		if _, err = calc.NewClockClient(messages).Now(ctx); slipstream.OutcomeOf(err) != slipstream.NotSent || !errors.As(err, new(*rpc.InvalidCallError)) {
			t.Errorf("%v: Thrift with a Protobuf client: %v", transport, err)
		}
		// A function with the other format.
		f := &rpc.Function{Service: "Catalog", Name: "Echo"}
		err = binary.Call(ctx, rpc.Invocation{Service: "Catalog", Function: f, Args: &calc.ClockEchoArgs{Text: "x"}, Result: new(calc.ClockEchoResult)})
		if kindOf(err) != thrift.ProtocolError || !strings.Contains(err.Error(), protobufrpc.ErrThrift.Error()) {
			t.Errorf("%v: a Protobuf method called with Thrift: %v", transport, err)
		}
		now := &protobufrpc.Method[*catalog.Text, *catalog.Text]{Function: rpc.Function{Service: "Clock", Name: "now"}}
		if _, err := now.Call(ctx, messages, nil); kindOf(err) != thrift.ProtocolError || !strings.Contains(err.Error(), "expects a Thrift message") {
			t.Errorf("%v: a Thrift function called with Protobuf: %v", transport, err)
		}
		<-reports
		<-reports
	}
}

type clock struct{}

func (clock) Now(context.Context) (int64, error) { return 17, nil }

func (clock) Echo(_ context.Context, text string) (string, error) { return "clock: " + text, nil }

// Protobuf needs a frame, and does not support the features of Thrift message headers.
func TestConfigurationsWithoutProtobuf(t *testing.T) {
	for _, c := range []rpc.ClientConfig{{Transport: rpc.Buffered}, {Compact: true}, {Transport: rpc.Framed, Multiplexed: true}} {
		c.Addr, c.Protobuf = "127.0.0.1:1", true
		if client, err := rpc.NewClient(c); err == nil {
			client.Close()
			t.Errorf("%+v was accepted", c)
		} else if !strings.Contains(err.Error(), "use TTHeader or Framed") {
			t.Error(err)
		}
	}
}

// The method must match its declaration in the file.
func TestMustMethod(t *testing.T) {
	if !find.Idempotent || echo.Idempotent || find.Service != "Catalog" || find.Name != "Find" {
		t.Errorf("%+v, %+v", &find.Function, &echo.Function)
	}
	file := catalog.File_catalog_proto
	for want, make := range map[string]func(){
		`has no method "Catalog.find"`:               func() { protobufrpc.MustMethod[*catalog.FindRequest, *catalog.Product](file, "Catalog.find") },
		`has no method "Find"`:                       func() { protobufrpc.MustMethod[*catalog.FindRequest, *catalog.Product](file, "Find") },
		`has no method "Store.Find"`:                 func() { protobufrpc.MustMethod[*catalog.FindRequest, *catalog.Product](file, "Store.Find") },
		`returns slipstream.catalog.Text`:            func() { protobufrpc.MustMethod[*catalog.Text, *catalog.Product](file, "Catalog.Echo") },
		`takes slipstream.catalog.Text`:              func() { protobufrpc.MustMethod[*catalog.FindRequest, *catalog.Text](file, "Catalog.Echo") },
		`Catalog.Watch of catalog.proto is a stream`: func() { protobufrpc.MustMethod[*catalog.FindRequest, *catalog.Product](file, "Catalog.Watch") },
	} {
		func() {
			defer func() {
				if err, _ := recover().(error); err == nil || !strings.Contains(err.Error(), want) {
					t.Errorf("%v; want %s", err, want)
				}
			}()
			make()
		}()
	}
}

// slow delays the first attempt until there has been a second one.
type slow struct {
	rpc.Caller
	first  sync.Once
	second chan struct{}
}

func (s *slow) Call(ctx context.Context, in rpc.Invocation) error {
	isFirst := false
	s.first.Do(func() { isFirst = true })
	err := s.Caller.Call(context.WithoutCancel(ctx), in)
	if isFirst {
		<-s.second
	} else {
		close(s.second)
	}
	return err
}

// The two attempts of a hedged call have separate results, and callers that wrap a client can access the messages.
func TestCallersAroundClients(t *testing.T) {
	s := serve(t, rpc.ServerConfig{}, new(products).service())
	client := connect(t, rpc.ClientConfig{Addr: s.Addr().String(), Protobuf: true})
	hedge, err := governance.NewHedge(&slow{Caller: client, second: make(chan struct{})}, governance.HedgeConfig{Delay: time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := find.Call(t.Context(), hedge, &catalog.FindRequest{Id: 5}); err != nil || !proto.Equal(got, product(5)) {
		t.Errorf("%v, %v", got, err)
	}
	if n := hedge.Stats().Hedges; n != 1 {
		t.Errorf("%d second attempts", n)
	}
	cached, err := governance.NewFallback(client, func(_ context.Context, in rpc.Invocation, _ error) error {
		if text := in.Args.(*protobufrpc.Message[*catalog.Text]).Value.GetText(); text != "fail x" {
			t.Errorf("the argument is %q", text)
		}
		in.Result.(*protobufrpc.Message[*catalog.Text]).Value = &catalog.Text{Text: "cached"}
		return nil
	})
	if err != nil {
		t.Fatal(err)
	}
	if got, err := echo.Call(t.Context(), cached, &catalog.Text{Text: "fail x"}); err != nil || got.GetText() != "cached" {
		t.Errorf("%v, %v", got, err)
	}
}

// Calls in progress are answered when the server shuts down.
func TestShutdown(t *testing.T) {
	for _, transport := range transports {
		h := &products{gate: make(chan struct{})}
		s := serve(t, rpc.ServerConfig{}, h.service())
		client := connect(t, rpc.ClientConfig{Addr: s.Addr().String(), Transport: transport, Protobuf: true})
		done := make(chan error, 1)
		go func() {
			_, err := echo.Call(t.Context(), client, &catalog.Text{Text: "wait"})
			done <- err
		}()
		testkit.Eventually(t, patience, func() error {
			if n := s.Stats().Calls; n != 1 {
				return fmt.Errorf("%d calls in progress", n)
			}
			return nil
		})
		ended := make(chan error, 1)
		go func() { ended <- s.Shutdown(context.Background()) }()
		close(h.gate)
		if err := <-done; err != nil {
			t.Errorf("%v: %v", transport, err)
		}
		if err := <-ended; err != nil {
			t.Errorf("%v: %v", transport, err)
		}
	}
}
