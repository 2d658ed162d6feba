package apache_test

import (
	"context"
	"errors"
	"fmt"
	"net"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	lib "github.com/apache/thrift/lib/go/thrift"

	"github.com/slipstream-go/slipstream/thrift"
	"github.com/slipstream-go/slipstream/thrift/apache"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// calculator is a handler of package rpc.
type calculator struct{ calc.Calculator }

func (calculator) Add(_ context.Context, a, b int32) (int32, error) {
	if a == b {
		return 0, &calc.Overflow{What: "equal"}
	}
	return a + b, nil
}

func (calculator) Echo(_ context.Context, text string) (string, error) { return text, nil }

func (calculator) Forget(context.Context, int64) error { return nil }

func (calculator) Fail(_ context.Context, how string) error { return errors.New(how) }

// A client of Apache Thrift calls a server of package rpc, over each transport and protocol that
// both support.
func TestApacheClientOfOurServer(t *testing.T) {
	s, err := rpc.NewServer(rpc.ServerConfig{}, calc.NewCalculatorService(calculator{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(t.Context())
	config := &lib.TConfiguration{ConnectTimeout: 30 * time.Second, SocketTimeout: 30 * time.Second}
	plain := lib.NewTTransportFactory()
	for transport, factory := range map[string]lib.TTransportFactory{"framed": lib.NewTFramedTransportFactoryConf(plain, config), "buffered": lib.NewTBufferedTransportFactory(4 << 10)} {
		for protocol, protocols := range map[string]lib.TProtocolFactory{"binary": lib.NewTBinaryProtocolFactoryConf(config), "compact": lib.NewTCompactProtocolFactoryConf(config),
			"binary, not strict": notStrict{config}} {
			for _, service := range []string{"", "Calculator"} {
				t.Run(fmt.Sprintf("%s, %s, %q", transport, protocol, service), func(t *testing.T) {
					over, err := factory.GetTransport(lib.NewTSocketFromAddrConf(s.Addr(), config))
					if err != nil {
						t.Fatal(err)
					}
					if err := over.Open(); err != nil {
						t.Fatal(err)
					}
					defer over.Close()
					p := protocols.GetProtocol(over)
					if service != "" {
						p = multiplexed{lib.NewTMultiplexedProtocol(p, service)}
					}
					callCalculator(t, lib.NewTStandardClient(protocols.GetProtocol(over), p))
				})
			}
		}
	}
}

// Clients of the library skip the field in replies that announces the shutdown of the server.
func TestApacheClientOfAServerThatEnds(t *testing.T) {
	s, err := rpc.NewServer(rpc.ServerConfig{DrainGrace: time.Hour}, calc.NewCalculatorService(calculator{}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	config := &lib.TConfiguration{ConnectTimeout: 30 * time.Second, SocketTimeout: 30 * time.Second}
	var clients []lib.TClient
	for _, protocols := range []lib.TProtocolFactory{lib.NewTBinaryProtocolFactoryConf(config), lib.NewTCompactProtocolFactoryConf(config)} {
		over := lib.NewTFramedTransportConf(lib.NewTSocketFromAddrConf(s.Addr(), config), config)
		if err := over.Open(); err != nil {
			t.Fatal(err)
		}
		defer over.Close()
		client := lib.NewTStandardClient(protocols.GetProtocol(over), protocols.GetProtocol(over))
		callCalculator(t, client)
		clients = append(clients, client)
	}
	ctx, cancel := context.WithCancel(t.Context())
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(ctx) }() // ends when ctx is done
	for {                                    // until it no longer listens
		c, err := net.Dial("tcp", s.Addr().String())
		if err != nil {
			break
		}
		c.Close()
	}
	for _, client := range clients {
		callCalculator(t, client)
	}
	cancel()
	if err := <-ended; !errors.Is(err, context.Canceled) {
		t.Error(err)
	}
}

// notStrict writes the old form of the Binary protocol.
type notStrict struct{ config *lib.TConfiguration }

func (n notStrict) GetProtocol(t lib.TTransport) lib.TProtocol {
	no := false
	config := *n.config
	config.TBinaryStrictWrite = &no
	return lib.NewTBinaryProtocolConf(t, &config)
}

// multiplexed is a value type for a processor whose methods have a pointer receiver.
type multiplexed struct{ *lib.TMultiplexedProtocol }

func callCalculator(t *testing.T, client lib.TClient) {
	t.Helper()
	ctx := t.Context()
	for i := range int32(10) {
		var sum calc.CalculatorAddResult
		if _, err := client.Call(ctx, "add", apache.Wrap(&calc.CalculatorAddArgs{A: i, B: 5}), apache.Wrap(&sum)); err != nil {
			t.Fatal(err)
		}
		if i == 5 && sum.Overflow == nil || i != 5 && sum.Success != thrift.Some(i+5) {
			t.Errorf("%d + 5 = %+v", i, sum)
		}
		if _, err := client.Call(ctx, "forget", apache.Wrap(&calc.CalculatorForgetArgs{ID: 1}), nil); err != nil {
			t.Fatal(err)
		}
	}
	text := strings.Repeat("x", 3<<20)
	var echo calc.CalculatorEchoResult
	if _, err := client.Call(ctx, "echo", apache.Wrap(&calc.CalculatorEchoArgs{Text: text}), apache.Wrap(&echo)); err != nil || echo.Success.V != text {
		t.Errorf("%d bytes, %v", len(echo.Success.V), err)
	}
	for name, kind := range map[string]int32{"fail": lib.INTERNAL_ERROR, "nothing": lib.UNKNOWN_METHOD} {
		_, err := client.Call(ctx, name, apache.Wrap(&calc.CalculatorFailArgs{How: "x"}), apache.Wrap(&calc.CalculatorFailResult{}))
		if e, ok := errors.AsType[lib.TApplicationException](err); !ok || e.TypeId() != kind {
			t.Errorf("%s: %v; want an exception of the kind %d", name, err, kind)
		}
	}
}

// A client of package rpc calls a server of Apache Thrift, over each transport and protocol that
// both support.
func TestOurClientOfApacheServer(t *testing.T) {
	config := &lib.TConfiguration{ConnectTimeout: 30 * time.Second, SocketTimeout: 30 * time.Second}
	plain := lib.NewTTransportFactory()
	for transport, factory := range map[rpc.Transport]lib.TTransportFactory{rpc.Framed: lib.NewTFramedTransportFactoryConf(plain, config), rpc.Buffered: lib.NewTBufferedTransportFactory(4 << 10)} {
		for compact, protocols := range map[bool]lib.TProtocolFactory{false: lib.NewTBinaryProtocolFactoryConf(config), true: lib.NewTCompactProtocolFactoryConf(config)} {
			for _, multiplexed := range []bool{false, true} {
				t.Run(fmt.Sprintf("%v, compact %v, multiplexed %v", transport, compact, multiplexed), func(t *testing.T) {
					var forgotten atomic.Int64
					var p lib.TProcessor = apacheCalculator(&forgotten)
					if multiplexed {
						both := lib.NewTMultiplexedProcessor()
						both.RegisterProcessor("Calculator", p)
						p = both
					}
					listener, err := lib.NewTServerSocket("127.0.0.1:0")
					if err == nil {
						err = listener.Listen()
					}
					if err != nil {
						t.Fatal(err)
					}
					server := lib.NewTSimpleServer4(p, listener, factory, protocols)
					served := make(chan error, 1)
					go func() { served <- server.Serve() }() // Stop stops it, and the test waits for it.
					client, err := rpc.NewClient(rpc.ClientConfig{Addr: listener.Addr().String(), Transport: transport, Compact: compact, Multiplexed: multiplexed, Timeout: 5 * time.Minute})
					if err != nil {
						t.Fatal(err)
					}
					callApache(t, calc.NewCalculatorClient(client), &forgotten)
					if st := client.Stats(); st.AnyOrder || st.Failed+st.Cancelled > 0 {
						t.Errorf("any order %v, %d failed, %d canceled", st.AnyOrder, st.Failed, st.Cancelled)
					}
					client.Close() // Stop waits for clients to disconnect
					if err := server.Stop(); err != nil {
						t.Error(err)
					}
					<-served
				})
			}
		}
	}
}

// apacheCalculator returns a processor of Apache Thrift.
func apacheCalculator(forgotten *atomic.Int64) lib.TProcessor {
	p := make(processor)
	p.AddToProcessorMap("add", function("add", func(args *calc.CalculatorAddArgs) thrift.Struct {
		if args.A == args.B {
			return &calc.CalculatorAddResult{Overflow: &calc.Overflow{What: "equal"}}
		}
		return &calc.CalculatorAddResult{Success: thrift.Some(args.A + args.B)}
	}))
	p.AddToProcessorMap("echo", function("echo", func(args *calc.CalculatorEchoArgs) thrift.Struct {
		return &calc.CalculatorEchoResult{Success: thrift.Some(args.Text)}
	}))
	p.AddToProcessorMap("forget", function("forget", func(args *calc.CalculatorForgetArgs) thrift.Struct {
		forgotten.Add(args.ID)
		return nil
	}))
	return p
}

func callApache(t *testing.T, c *calc.CalculatorClient, forgotten *atomic.Int64) {
	t.Helper()
	var all sync.WaitGroup
	for i := range int32(30) {
		all.Go(func() {
			for n := range int32(100) {
				sum, err := c.Add(t.Context(), i, n)
				if overflow, ok := errors.AsType[*calc.Overflow](err); ok != (i == n) || ok && overflow.What != "equal" || !ok && (err != nil || sum != i+n) {
					t.Errorf("%d + %d is %d, %v", i, n, sum, err)
				}
				text := fmt.Sprint(i, " ", n)
				if got, err := c.Echo(t.Context(), text); err != nil || got != text {
					t.Errorf("echo of %q: %q, %v", text, got, err)
				}
				if err := c.Forget(t.Context(), 1); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	text := strings.Repeat("x", 3<<20)
	if got, err := c.Echo(t.Context(), text); err != nil || got != text {
		t.Errorf("%d bytes, %v", len(got), err)
	}
	err := c.Fail(t.Context(), "x") // the server does not have the function
	if e, ok := errors.AsType[*thrift.ApplicationException](err); !ok || e.Kind != thrift.UnknownMethod {
		t.Errorf("calling an unknown function: %v", err)
	}
	for deadline := time.Now().Add(time.Minute); forgotten.Load() < 3000; time.Sleep(time.Millisecond) {
		if time.Now().After(deadline) {
			t.Fatalf("%d of 3000 oneway calls arrived", forgotten.Load())
		}
	}
}
