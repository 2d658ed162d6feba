package rpc_test

import (
	"context"
	"errors"
	"math"
	"net"
	"strings"
	"sync/atomic"
	"testing"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/thrift/internal/calc"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

func newBudget(t *testing.T, c rpc.BudgetConfig) *rpc.Budget {
	t.Helper()
	b, err := rpc.NewBudget(c)
	if err != nil {
		t.Fatal(err)
	}
	return b
}

// While all calls fail, there are at most 10 additional attempts, or a tenth of the calls.
func TestBudgetPermitsAPartOfTheCalls(t *testing.T) {
	b := newBudget(t, rpc.BudgetConfig{})
	made := 0
	for i := 1; i <= 10_000; i++ {
		b.Deposit()
		for b.Withdraw() {
			made++
		}
		if made > max(10, i/10) {
			t.Fatalf("%d additional attempts for %d calls, want at most 10 or a tenth", made, i)
		}
		if i == 1 && made != 10 {
			t.Fatalf("%d additional attempts for the first call, want 10", made)
		}
	}
	if made != 1000 || b.Denied() != 10_000 {
		t.Errorf("%d additional attempts and %d denied, want 1,000 and 10,000", made, b.Denied())
	}
}

// The number of attempts saved in a long time without failures is bounded.
func TestBudgetSavesABurst(t *testing.T) {
	b := newBudget(t, rpc.BudgetConfig{Ratio: 0.5, Burst: 20})
	for range 100_000 {
		b.Deposit()
	}
	made := 0
	for b.Withdraw() {
		made++
	}
	if made != 20 {
		t.Errorf("%d additional attempts in a row, want 20", made)
	}
}

func TestBudgetsThatAreWrong(t *testing.T) {
	for _, c := range []struct {
		config rpc.BudgetConfig
		want   string
	}{
		{rpc.BudgetConfig{Ratio: -1}, "the ratio of a budget is -1, expected 0.001 to 10"},
		{rpc.BudgetConfig{Ratio: 11}, "the ratio of a budget is 11, expected 0.001 to 10"},
		{rpc.BudgetConfig{Ratio: math.NaN()}, "the ratio of a budget is NaN"},
		{rpc.BudgetConfig{Burst: -1}, "burst of a budget -1, expected 0 (the default) to"},
	} {
		if _, err := rpc.NewBudget(c.config); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%+v: %v, want %q", c.config, err, c.want)
		}
	}
}

// A server that reads calls and cuts their connections gets each call once, plus the retries that the budget allows.
// Retries of calls that were not sent do not use the budget.
func TestDyingServerGetsFewRepetitions(t *testing.T) {
	testkit.NoLeaks(t)
	var requests atomic.Int64
	server := testkit.Serve(t, func(conn net.Conn, _ int) {
		b := make([]byte, 4096)
		if n, _ := conn.Read(b); n > 0 {
			requests.Add(1)
		}
	})
	budget := newBudget(t, rpc.BudgetConfig{})
	client := connect(t, rpc.ClientConfig{Addr: server.Addr, Budget: budget, Retries: 3, Depth: 1, MaxConnections: 1, Backoff: 1, MaxBackoff: 1})
	c := calc.NewCalculatorClient(client)
	const calls = 200
	for range calls {
		_, err := c.Echo(context.Background(), "a")
		if err == nil {
			t.Fatal("a call has a result, although the server does not answer")
		}
	}
	if n := requests.Load(); n < calls/2 || n > calls+20 {
		t.Errorf("the server got %d requests of %d calls, want at most a tenth more", n, calls)
	}
	if budget.Denied() == 0 {
		t.Error("the budget denied no attempt")
	}
}

func invalid(err error) bool {
	_, is := errors.AsType[*rpc.InvalidCallError](err)
	return is
}

// The error of an invalid call differs from that of a call that fails because there is no server.
func TestCallThatIsWrongHasItsOwnError(t *testing.T) {
	testkit.NoLeaks(t)
	client := connect(t, rpc.ClientConfig{Addr: "127.0.0.1:1", FailFast: true, MaxMessage: 200})
	c := calc.NewCalculatorClient(client)
	_, err := c.Echo(context.Background(), strings.Repeat("x", 300))
	if !invalid(err) || slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), "the limit is 200") {
		t.Errorf("a message that is too large: %v", err)
	}
	if _, err := c.Echo(context.Background(), "x"); err == nil || invalid(err) {
		t.Errorf("a call without a server: %v", err)
	}
}
