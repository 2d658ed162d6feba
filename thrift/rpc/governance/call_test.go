package governance_test

import (
	"context"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
	"github.com/slipstream-go/slipstream/thrift/rpc/governance"
)

// patience is how long a test waits for a condition.
const patience = 30 * time.Second

// calculator is a handler whose function echo is set by the test.
type calculator struct {
	calc.Calculator // nil, because nothing else is called
	echo            func(ctx context.Context, text string) (string, error)
}

func (c *calculator) Echo(ctx context.Context, text string) (string, error) { return c.echo(ctx, text) }

// serve starts a server.
func serve(t *testing.T, echo func(ctx context.Context, text string) (string, error)) *rpc.Server {
	t.Helper()
	s, err := rpc.NewServer(rpc.ServerConfig{}, calc.NewCalculatorService(&calculator{echo: echo}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() {
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		_ = s.Shutdown(ctx) // some tests have already called it
	})
	return s
}

// connect returns a client with a timeout that is long enough for a slow machine.
func connect(t *testing.T, s *rpc.Server, c rpc.ClientConfig) *rpc.Client {
	t.Helper()
	c.Addr, c.Timeout = s.Addr().String(), 5*time.Minute
	client, err := rpc.NewClient(c)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { client.Close() })
	return client
}

// A server that hangs on the first attempt answers the second one. The late answer to the first one does not affect
// later calls.
func TestHedgeOfAServerThatHangsOnOneCall(t *testing.T) {
	testkit.NoLeaks(t)
	gate := make(chan struct{})
	var calls atomic.Int64
	s := serve(t, func(_ context.Context, text string) (string, error) {
		if calls.Add(1) == 1 {
			<-gate
			return "late", nil
		}
		return text, nil
	})
	client := connect(t, s, rpc.ClientConfig{Retries: -1})
	hedge, err := governance.NewHedge(client, governance.HedgeConfig{Delay: 20 * time.Millisecond})
	if err != nil {
		t.Fatal(err)
	}
	c := calc.NewCalculatorClient(hedge)
	if text, err := c.Echo(t.Context(), "a"); text != "a" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	close(gate)
	for _, want := range []string{"b", "c", "d"} {
		if text, err := c.Echo(t.Context(), want); text != want || err != nil {
			t.Errorf("%q, %v, want %q", text, err, want)
		}
	}
	if won := hedge.Stats().HedgesWon; won < 1 {
		t.Errorf("%d hedges won", won)
	}
}

// A server that refuses a call, because it has too many, executes it when it is retried.
func TestRetryOfACallThatAServerRefuses(t *testing.T) {
	testkit.NoLeaks(t)
	gate := make(chan struct{})
	running := make(chan struct{}, 1)
	s, err := rpc.NewServer(rpc.ServerConfig{MaxCalls: 1}, calc.NewCalculatorService(&calculator{echo: func(_ context.Context, text string) (string, error) {
		if text == "wait" {
			running <- struct{}{}
			<-gate
		}
		return text, nil
	}}))
	if err != nil {
		t.Fatal(err)
	}
	if err := s.Listen("tcp", "127.0.0.1:0"); err != nil {
		t.Fatal(err)
	}
	defer s.Shutdown(context.Background())
	client := connect(t, s, rpc.ClientConfig{Retries: -1})
	plain := calc.NewCalculatorClient(client)
	first := make(chan error, 1)
	go func() { // ends with the gate
		_, err := plain.Echo(context.Background(), "wait")
		first <- err
	}()
	<-running
	if _, err := plain.Echo(t.Context(), "a"); slipstream.OutcomeOf(err) != slipstream.Refused {
		t.Errorf("%v, want a refusal", err)
	}
	attempts := 0
	opens := callerFunc(func(ctx context.Context, in rpc.Invocation) error {
		if attempts++; attempts == 2 {
			close(gate)
			if err := <-first; err != nil {
				t.Error(err)
			}
		}
		return client.Call(ctx, in)
	})
	retry, err := governance.NewRetry(opens, governance.RetryConfig{Retries: 10})
	if err != nil {
		t.Fatal(err)
	}
	if text, err := calc.NewCalculatorClient(retry).Echo(t.Context(), "a"); text != "a" || err != nil {
		t.Errorf("%q, %v", text, err)
	}
	if attempts < 2 {
		t.Errorf("%d attempts", attempts)
	}
}

type callerFunc func(ctx context.Context, in rpc.Invocation) error

func (f callerFunc) Call(ctx context.Context, in rpc.Invocation) error { return f(ctx, in) }
