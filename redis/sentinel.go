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

// SentinelOptions configure the [Client] of a master that Redis Sentinel watches. MasterName and
// Sentinels are necessary.
type SentinelOptions struct {
	// Options are those of the master. Addr must be empty. A call waits while there is no master, at
	// most for DialTimeout, unless FailFast is set: if the Sentinels take longer for a failover, as
	// they do with down-after-milliseconds of 30,000, DialTimeout must be longer.
	Options
	// MasterName is what the Sentinels call the master.
	MasterName string
	// Sentinels are addresses of Sentinels, host:port. One that answers is enough; the others are
	// learned from it.
	Sentinels []string
	// SentinelUser and SentinelPassword authenticate connections to Sentinels, as User and Password
	// of Options do those to the master.
	SentinelUser, SentinelPassword string
	// SentinelTLS, if set, encrypts connections to Sentinels. An empty ServerName is taken from the
	// address. Options.TLS is only for the master.
	SentinelTLS *tls.Config
	// MapAddr, if set, translates each address that a Sentinel announces, of the master and of other
	// Sentinels, into the one that is dialed: for servers behind network address translation. Both
	// are host:port. It must be safe for concurrent use and return the same address each time.
	MapAddr func(addr string) string
	// RefreshEvery is how often Sentinels are asked for the master, with jitter, when nothing says
	// that it has changed. If zero, it is 60 s.
	RefreshEvery time.Duration
}

// String describes the options without passwords.
func (o SentinelOptions) String() string {
	master := o.Options
	master.Addr = o.MasterName + "@" + strings.Join(o.Sentinels, ",")
	return master.String()
}

// GoString is String, so that %#v shows no passwords either.
func (o SentinelOptions) GoString() string { return "redis.SentinelOptions(" + o.String() + ")" }

// ErrUnknownMaster is in the chain of the error of a Sentinel that watches no master of the name; see
// [SentinelError].
var ErrUnknownMaster = sentinel.ErrUnknownMaster

// A SentinelError is in the chain of an error if no master is known.
type SentinelError struct {
	// MasterName is what was asked for.
	MasterName string
	// Answers are those of the Sentinels that were asked last.
	Answers []SentinelAnswer
}

// A SentinelAnswer says why a Sentinel has named no master.
type SentinelAnswer struct {
	// Addr is the address of the Sentinel.
	Addr string
	// Err is what is wrong with it: no connection, a [*ServerError] such as WRONGPASS,
	// [ErrUnknownMaster], or that the server that it names is not a master.
	Err error
}

// Error returns what each Sentinel has answered.
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

// sentinelError returns an error of the refresher as one that users know.
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

// ConnectSentinel returns a client of a master that Redis Sentinel watches, once a Sentinel has named
// the master and a connection to it is up. The client follows the Sentinels through failovers; see
// the package comment. If no Sentinel names a server that is a master, the error has a
// [*SentinelError] in its chain; Options.NoWait makes ConnectSentinel return immediately instead. The
// client must be closed.
func ConnectSentinel(ctx context.Context, o SentinelOptions) (*Client, error) {
	if err := o.check(); err != nil {
		return nil, err
	}
	c := &Client{core: newCore(&o.Options), fail: driver.Errors{Addr: strings.Join(o.Sentinels, ",")}}
	c.hooks.Addr = c.fail.Addr
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
		return errors.New("redis: Sentinels without MasterName")
	case len(o.Sentinels) == 0:
		return errors.New("redis: a master without Sentinels")
	case o.Addr != "":
		return fmt.Errorf("redis: address %q of a master, which the Sentinels name", o.Addr)
	case o.SentinelUser != "" && o.SentinelPassword == "":
		return errors.New("redis: a user of Sentinels without a password")
	}
	for _, addr := range o.Sentinels {
		if driver.Network(addr) == "unix" {
			return fmt.Errorf("redis: Sentinel %q, expected host:port", addr)
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
