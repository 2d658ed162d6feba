package rpc_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// With FailFast, calls that wait for a connection fail when connecting to the server fails, even while a server that is
// shutting down still answers earlier calls.
func TestFailFastEndsCallsThatWait(t *testing.T) {
	h := &calculator{gate: make(chan struct{})}
	s := serve(t, rpc.ServerConfig{}, calc.NewCalculatorService(h))
	client := connect(t, rpc.ClientConfig{Addr: s.Addr().String(), DialTimeout: time.Hour, FailFast: true, Retries: -1, MaxBackoff: 20 * time.Millisecond})
	c := calc.NewCalculatorClient(client)
	slow := make(chan error, 1)
	go func() { slow <- c.Fail(context.Background(), "wait") }() // ends with the gate
	testkit.Eventually(t, patience, func() error {
		if h.running.Load() == 0 {
			return errors.New("the call has not arrived")
		}
		return nil
	})
	ended := make(chan error, 1)
	go func() { ended <- s.Shutdown(context.Background()) }() // ends with the gate
	testkit.Eventually(t, patience, func() error {
		_, err := c.Echo(t.Context(), "a")
		if err == nil || slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), "refused") {
			return fmt.Errorf("%v, want a refusal", err)
		}
		return nil
	})
	close(h.gate)
	if err := errors.Join(<-slow, <-ended); err != nil {
		t.Error(err)
	}
	// The first call of a client starts before the attempt to connect has failed.
	for range 20 {
		client := connect(t, rpc.ClientConfig{Addr: s.Addr().String(), DialTimeout: time.Hour, FailFast: true})
		if _, err := calc.NewCalculatorClient(client).Echo(t.Context(), "a"); slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), "refused") {
			t.Errorf("the first call: %v", err)
		}
		client.Close()
	}
}
