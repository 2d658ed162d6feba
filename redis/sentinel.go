package redis

import (
	"context"
	"crypto/tls"
	"errors"
	"fmt"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
	"github.com/slipstream-go/slipstream/redis/internal/sentinel"
)

// SentinelOptions configure the [Client] of a master that Redis Sentinel monitors. MasterName and
// Sentinels are required.
type SentinelOptions struct {
	// Options apply to the master. Addr must be empty. A call waits while there is no master, for
	// at most DialTimeout, unless FailFast is set. If failovers take longer than that, for example
	// because down-after-milliseconds is 30,000, set a longer DialTimeout.
	Options
	// MasterName is the name of the master in the configuration of the Sentinels.
	MasterName string
	// Sentinels are the addresses of some Sentinels, as host:port. One that answers is enough; the
	// client learns the others from it.
	Sentinels []string
	// SentinelUser and SentinelPassword authenticate connections to Sentinels. User and Password of
	// Options authenticate connections to the master.
	SentinelUser, SentinelPassword string
	// SentinelTLS, if set, encrypts connections to Sentinels. If its ServerName is empty, the host
	// of the address is used. Options.TLS applies only to the master.
	SentinelTLS *tls.Config
	// MapAddr, if set, translates an address that a Sentinel announces, of the master or of another
	// Sentinel, into the address to dial. Servers behind network address translation need it. Both are
	// host:port. It must be safe for concurrent use and always return the same result for the same
	// address.
	MapAddr func(addr string) string
	// RefreshEvery is the interval, with jitter, at which the client queries Sentinels for the
	// master when nothing indicates that it has changed. If zero, it defaults to 60 s.
	RefreshEvery time.Duration
	// ReadFrom selects the servers that execute commands with a key that only read: the master, or the
	// replicas that a Sentinel reaches and that are connected to the master. Sentinels do not know zones, so
	// ReadZone is the same as ReadReplica. For a second or more after a failover, the new master is read.
	ReadFrom ReadPolicy
}

// String describes the options without passwords.
func (o SentinelOptions) String() string {
	master := o.Options
	master.Addr = o.MasterName + "@" + strings.Join(o.Sentinels, ",")
	return master.String()
}

// GoString returns the same as String, so that %#v does not show passwords either.
func (o SentinelOptions) GoString() string { return "redis.SentinelOptions(" + o.String() + ")" }

// ErrUnknownMaster is in the chain of an error if a Sentinel monitors no master with the given
// name; see [SentinelError].
var ErrUnknownMaster = sentinel.ErrUnknownMaster

// A SentinelError is in the chain of an error if no master is known.
type SentinelError struct {
	// MasterName is the name of the master in the client's options.
	MasterName string
	// Answers are the answers of the Sentinels in the latest round.
	Answers []SentinelAnswer
}

// A SentinelAnswer says why a Sentinel did not name a usable master.
type SentinelAnswer struct {
	// Addr is the address of the Sentinel.
	Addr string
	// Err is the reason: no connection, a [*ServerError] such as WRONGPASS, [ErrUnknownMaster], or that
	// the server that the Sentinel names is not a master.
	Err error
}

// Error returns the answer of each Sentinel.
func (e *SentinelError) Error() string {
	n := sentinel.NoMasterError{Name: e.MasterName}
	for _, a := range e.Answers {
		n.Answers = append(n.Answers, sentinel.Answer{Addr: a.Addr, Err: a.Err})
	}
	return n.Error()
}

// Unwrap returns the errors of the Sentinels.
func (e *SentinelError) Unwrap() []error {
	errs := make([]error, len(e.Answers))
	for i, a := range e.Answers {
		errs[i] = a.Err
	}
	return errs
}

// sentinelError converts an error of the refresher to an exported type.
func sentinelError(err error) error {
	var refused *cluster.RefusedError
	switch e := err.(type) {
	case *sentinel.NoMasterError:
		public := &SentinelError{MasterName: e.Name}
		for _, a := range e.Answers {
			public.Answers = append(public.Answers, SentinelAnswer{Addr: a.Addr, Err: sentinelError(a.Err)})
		}
		return public
	case *sentinel.MasterError:
		return &sentinel.MasterError{Addr: e.Addr, Err: sentinelError(e.Err)}
	}
	switch {
	case errors.Is(err, sentinel.ErrClosed):
		return ErrClosed
	case errors.As(err, &refused):
		return fmt.Errorf("%s: %w", refused.Command, parseServerError([]byte(refused.Text)))
	}
	return err
}

// ConnectSentinel returns a client of a master that Redis Sentinel monitors, once a Sentinel has named
// the master and the client is connected to it. The client follows failovers; see the package comment.
// If no Sentinel names a server that is a master, the error has a [*SentinelError] in its chain.
// Options.NoWait makes ConnectSentinel return immediately. The client must be closed.
func ConnectSentinel(ctx context.Context, o SentinelOptions) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Client{core: newCore(&o.Options), fail: driver.Errors{Addr: strings.Join(o.Sentinels, ",")}}
	c.several, c.hooks.Addr = o.ReadFrom != ReadMaster, c.fail.Addr
	c.hub = newHub(c.core, c.fail, func() *node { return c.router.one() })
	c.hub.gone = func(n *node) bool { return c.router.gone(n) }
	c.router = newSentinelRouter(c.core, c.hub, &o)
	if o.NoWait {
		return c, nil
	}
	if err := c.router.connect(ctx); err != nil {
		c.Close()
		return nil, c.fail.NotSent("connect", sentinelError(err))
	}
	return c, nil
}

func (o *SentinelOptions) check() error {
	const check driver.Check = "redis"
	switch {
	case o.MasterName == "":
		return errors.New("redis: SentinelOptions.MasterName is empty; set the name that the Sentinels use")
	case len(o.Sentinels) == 0:
		return errors.New("redis: SentinelOptions.Sentinels is empty; set the address of at least one Sentinel")
	case o.Addr != "":
		return fmt.Errorf("redis: SentinelOptions.Addr is %q; leave it empty, because the Sentinels name the master", o.Addr)
	case o.SentinelUser != "" && o.SentinelPassword == "":
		return errors.New("redis: SentinelOptions.SentinelUser is set and SentinelPassword is empty; set both")
	}
	if o.ReadFrom > ReadZone {
		return fmt.Errorf("redis: SentinelOptions.ReadFrom is %d; use one of the constants of ReadPolicy", o.ReadFrom)
	}
	for _, addr := range o.Sentinels {
		if driver.Network(addr) == "unix" {
			return fmt.Errorf("redis: SentinelOptions.Sentinels has %q; use host:port", addr)
		}
		if err := check.Addr(addr); err != nil {
			return err
		}
	}
	if err := check.Durations(driver.Duration{Name: "refresh interval", Value: o.RefreshEvery}); err != nil {
		return err
	}
	return o.Options.check()
}
