package governance

import (
	"cmp"
	"errors"
	"fmt"
	"math"
	"time"

	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// Balance is how a [Pool] chooses the member for a call.
type Balance uint8

const (
	// LeastOutstanding picks two members at random, by weight, and chooses the one that has fewer calls relative to its
	// weight.
	LeastOutstanding Balance = iota
	// ConsistentHash chooses the same member for the same key in the context ([WithHashKey]), in all processes. If a
	// member is added or removed, only its share of the keys moves (rendezvous hashing). It examines every member, so it
	// is slower in pools with many members. Calls without a key are distributed as with LeastOutstanding.
	ConsistentHash
)

// String returns the name of the balance.
func (b Balance) String() string {
	switch b {
	case LeastOutstanding:
		return "LeastOutstanding"
	case ConsistentHash:
		return "ConsistentHash"
	}
	return fmt.Sprintf("balance %d", uint8(b))
}

// PoolConfig configures a [Pool]. All fields but Resolver may be zero.
type PoolConfig struct {
	// Resolver finds the members.
	Resolver Resolver
	// Client configures the members' clients. Addr must be empty. Retries, FailFast and Budget are ignored: a call that
	// could not be sent to a member goes to another one, and a Retry around the pool retries other failures. Timeout
	// limits a call to one member, and MaxCalls and MaxBytes apply to each member. Connections are opened to all members.
	// OnEvent is also called for the events of the pool.
	Client rpc.ClientConfig
	// Balance is how the member for a call is chosen.
	Balance Balance
	// Refresh is the interval between calls of the resolver. If zero, it defaults to 10 s. The resolver is called earlier,
	// but at most once per second, if connecting to a member fails or if there are no members.
	Refresh time.Duration

	// Failures is the number of consecutive failures, of calls or of attempts to connect, after which a member is ejected:
	// it gets no calls for some time. Canceled and refused calls do not count. If zero, it defaults to 5; if negative,
	// members are not ejected.
	Failures int
	// EjectionTime is how long a member is ejected the first time. The time doubles with each ejection soon after the
	// previous one, up to MaxEjectionTime. If zero, they default to 5 s and 1 min. A restored member is ejected again
	// after a single failure.
	EjectionTime, MaxEjectionTime time.Duration
	// MaxEjected is the fraction of the members that may be ejected at a time, from 0 to 1. If zero, it defaults to 0.5: a
	// pool with one member does not eject it, and if all members fail, half of them still get calls.
	MaxEjected float64
	// WarmUp is the time over which the share of an added or restored member grows from a tenth to its full weight, if
	// there are other members. If zero, it defaults to 10 s; if negative, members get their full share immediately.
	WarmUp time.Duration
}

const (
	defaultRefresh         = 10 * time.Second
	defaultFailures        = 5
	defaultEjectionTime    = 5 * time.Second
	defaultMaxEjectionTime = time.Minute
	defaultMaxEjected      = 0.5
	defaultWarmUp          = 10 * time.Second
	// leastRefresh is the minimum time between two calls of a resolver.
	leastRefresh = time.Second
	// mostResolving limits the duration of a call of a resolver.
	mostResolving = 10 * time.Second
)

// check returns an error if a field has an invalid value.
func (c *PoolConfig) check() error {
	switch {
	case c.Resolver == nil:
		return errors.New(string(check) + ": the pool has no resolver")
	case c.Client.Addr != "":
		return fmt.Errorf("%s: Client.Addr is %q; it must be empty, because the resolver finds the addresses", check, c.Client.Addr)
	case c.Balance > ConsistentHash:
		return fmt.Errorf("%s: %v, expected LeastOutstanding or ConsistentHash", check, c.Balance)
	case !(c.MaxEjected >= 0 && c.MaxEjected <= 1):
		return fmt.Errorf("%s: max ejected %v, expected 0 (the default) to 1", check, c.MaxEjected)
	case c.Failures > math.MaxInt32:
		return fmt.Errorf("%s: failures %d, expected at most %d", check, c.Failures, math.MaxInt32)
	}
	if err := check.Durations(
		driver.Duration{Name: "refresh", Value: c.Refresh},
		driver.Duration{Name: "ejection time", Value: c.EjectionTime},
		driver.Duration{Name: "max ejection time", Value: c.MaxEjectionTime},
	); err != nil {
		return err
	}
	return c.Client.Validate()
}

// withDefaults returns c with zero fields replaced by their defaults.
func (c PoolConfig) withDefaults() PoolConfig {
	c.Refresh = max(cmp.Or(c.Refresh, defaultRefresh), leastRefresh)
	c.Failures = cmp.Or(c.Failures, defaultFailures)
	c.EjectionTime = cmp.Or(c.EjectionTime, defaultEjectionTime)
	c.MaxEjectionTime = max(cmp.Or(c.MaxEjectionTime, defaultMaxEjectionTime), c.EjectionTime)
	c.MaxEjected = cmp.Or(c.MaxEjected, defaultMaxEjected)
	c.WarmUp = max(cmp.Or(c.WarmUp, defaultWarmUp), 0)
	c.Client.Retries, c.Client.FailFast, c.Client.Budget = -1, true, nil
	return c
}
