package rpc

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/internal/driver"
)

// BudgetConfig configures a [Budget]. The zero value works.
type BudgetConfig struct {
	// Ratio is how many additional attempts a call permits, from 0.001 to 10. If zero, it is 0.1: for ten calls there
	// is one attempt more.
	Ratio float64
	// Burst bounds the attempts that were permitted and not made. If zero, it is 100. It bounds what a server gets in
	// addition to Ratio when it fails after a long time without failures.
	Burst int
}

const (
	defaultBudgetRatio = 0.1
	defaultBudgetBurst = 100
	// firstAttempts is how many additional attempts are permitted before there were calls. They are a loan: the next
	// calls permit none until it is returned.
	firstAttempts = 10
	// budgetUnit is an attempt.
	budgetUnit = 1000
)

// A Budget bounds the attempts that are made in addition to the first ones of calls, so that clients do not multiply
// the load of a server that fails. For n calls they are at most 10 or n times Ratio, whichever is more. All
// methods are safe for concurrent use.
type Budget struct {
	// Immutable.
	deposit, most int64 // in parts of an attempt

	// Atomics, written by callers.
	owed, saved atomic.Int64 // in parts of an attempt
	denied      atomic.Uint64
}

// NewBudget returns a budget.
func NewBudget(c BudgetConfig) (*Budget, error) {
	const check driver.Check = "thrift/rpc"
	if c.Ratio == 0 {
		c.Ratio = defaultBudgetRatio
	}
	if !(c.Ratio >= 1./budgetUnit && c.Ratio <= 10) {
		return nil, fmt.Errorf("%s: the ratio of a budget is %v, expected 0.001 to 10", check, c.Ratio)
	}
	if err := check.Numbers(driver.Number{Name: "burst of a budget", Value: c.Burst, Max: math.MaxInt32}); err != nil {
		return nil, err
	}
	if c.Burst == 0 {
		c.Burst = defaultBudgetBurst
	}
	b := &Budget{deposit: int64(math.Round(c.Ratio * budgetUnit)), most: int64(c.Burst) * budgetUnit}
	first := min(firstAttempts*budgetUnit, b.most)
	b.owed.Store(first)
	b.saved.Store(first)
	return b, nil
}

// Deposit notes a call. Code that makes attempts calls it once for each call, before the first attempt.
func (b *Budget) Deposit() {
	if b.owed.Load() > 0 {
		b.owed.Add(-b.deposit)
		return
	}
	for {
		n := b.saved.Load()
		if n >= b.most || b.saved.CompareAndSwap(n, min(n+b.deposit, b.most)) {
			return
		}
	}
}

// Withdraw reports whether one more attempt is permitted, and counts it.
func (b *Budget) Withdraw() bool {
	for {
		n := b.saved.Load()
		if n < budgetUnit {
			b.denied.Add(1)
			return false
		}
		if b.saved.CompareAndSwap(n, n-budgetUnit) {
			return true
		}
	}
}

// Denied returns how many attempts were not permitted.
func (b *Budget) Denied() uint64 { return b.denied.Load() }
