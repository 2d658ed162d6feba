package rpc

import (
	"fmt"
	"math"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/internal/driver"
)

// BudgetConfig configures a [Budget]. The zero value is ready to use.
type BudgetConfig struct {
	// Ratio is the number of additional attempts allowed per call, from 0.001 to 10. If zero, it defaults to 0.1, one
	// additional attempt for every ten calls.
	Ratio float64
	// Burst is the maximum number of unused attempts that are saved. It bounds how much a server that fails after a long
	// time without failures receives beyond Ratio. If zero, it defaults to 100.
	Burst int
}

const (
	defaultBudgetRatio = 0.1
	defaultBudgetBurst = 100
	// firstAttempts is the number of additional attempts allowed initially. They are a loan: calls add to the budget only
	// after the loan has been repaid.
	firstAttempts = 10
	// budgetUnit represents one attempt.
	budgetUnit = 1000
)

// A Budget bounds the attempts made in addition to the first attempt of each call, so that clients do not multiply the
// load on a failing server. For n calls, it allows at most 10 or n times Ratio additional attempts, whichever is more.
// All methods are safe for concurrent use.
type Budget struct {
	// Immutable.
	deposit, most int64 // in units of 1/budgetUnit attempt

	// Atomics, written by callers.
	owed, saved atomic.Int64 // in units of 1/budgetUnit attempt
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

// Deposit records a call. Code that makes attempts must call it once for each call, before the first attempt.
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

// Withdraw reports whether an additional attempt is allowed, and if so, takes it from the budget.
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

// Denied returns the number of attempts that were denied.
func (b *Budget) Denied() uint64 { return b.denied.Load() }
