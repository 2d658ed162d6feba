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

// Balance says how a [Pool] chooses the member of a call.
type Balance uint8

const (
	// LeastOutstanding draws two members by their weights and chooses the one that has fewer calls for its weight.
	LeastOutstanding Balance = iota
	// ConsistentHash chooses the same member for the same key of the context ([WithHashKey]), also in other
	// processes. If a member comes or goes, only its share of the keys moves (rendezvous hashing). It looks at every
	// member, so it is slower in pools of many members. Calls without a key go to a member as with LeastOutstanding.
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
	// Client is the configuration of the clients of members. Addr must be empty. Retries, FailFast and Budget do not
	// apply: a call that a member did not get goes to another one, and a Retry around the pool repeats the others.
	// Timeout bounds a call at one member, and MaxCalls and MaxBytes are those of one member. Connections are opened
	// to all members. OnEvent gets the events of the pool as well.
	Client rpc.ClientConfig
	// Balance says how the member of a call is chosen.
	Balance Balance
	// Refresh is how often the resolver is called. If zero, it is 10 s. It is called earlier, but not more than once
	// a second, if a member cannot be connected to, or if there is none.
	Refresh time.Duration

	// Failures is how many calls and attempts to connect of a member fail in a row before it is ejected: it gets no
	// calls for some time. Calls that were canceled or refused do not count. If zero, it is 5; if negative, no member
	// is ejected.
	Failures int
	// EjectionTime is how long a member is ejected for the first time. The time doubles with each ejection that comes
	// soon after the one before, up to MaxEjectionTime. If zero, they are 5 s and 1 min. A member that was restored
	// is ejected again by one failure.
	EjectionTime, MaxEjectionTime time.Duration
	// MaxEjected is the share of the members that may be ejected at a time, from 0 to 1. If zero, it is 0.5. So a
	// pool of one member ejects none, and if all members fail, half of them still get calls.
	MaxEjected float64
	// WarmUp is how long the share of a member grows, from a tenth to all of its weight, after it was added or
	// restored while there are others. If zero, it is 10 s; if negative, members get their share immediately.
	WarmUp time.Duration
}

const (
	defaultRefresh         = 10 * time.Second
	defaultFailures        = 5
	defaultEjectionTime    = 5 * time.Second
	defaultMaxEjectionTime = time.Minute
	defaultMaxEjected      = 0.5
	defaultWarmUp          = 10 * time.Second
	// leastRefresh is the time between two calls of a resolver, at least.
	leastRefresh = time.Second
	// mostResolving bounds a call of a resolver.
	mostResolving = 10 * time.Second
)

// check returns an error if a field has a value that it cannot have.
func (c *PoolConfig) check() error {
	switch {
	case c.Resolver == nil:
		return errors.New(string(check) + ": a pool without a resolver")
	case c.Client.Addr != "":
		return fmt.Errorf("%s: the address %q of clients, expected none: the resolver has them", check, c.Client.Addr)
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

// withDefaults returns c with the defaults of fields that are zero.
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
