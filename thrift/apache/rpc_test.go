package apache_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
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

// A client of Apache Thrift calls a server of package rpc, over each transport and protocol that both have.
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

// notStrict writes the old form of the Binary protocol.
type notStrict struct{ config *lib.TConfiguration }

func (n notStrict) GetProtocol(t lib.TTransport) lib.TProtocol {
	no := false
	config := *n.config
	config.TBinaryStrictWrite = &no
	return lib.NewTBinaryProtocolConf(t, &config)
}

// multiplexed hides that its methods are those of a pointer.
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
