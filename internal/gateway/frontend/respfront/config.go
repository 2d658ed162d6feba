package respfront

import (
	"crypto/tls"
	"errors"
	"log/slog"
	"net/netip"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/access"
	"github.com/slipstream-go/slipstream/internal/gateway/limit"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// User is who may log in with AUTH.
type User struct {
	// Name is what AUTH calls the user; "default" is the one of AUTH without a name.
	// To the rules of resources it is an API key of that name. A name may stand in
	// the list twice, so that a new password can be handed out before the old one goes.
	Name string
	// PasswordHash is the SHA-256 of the password. A hash tells nothing of a password
	// with 128 random bits or more, such as access.NewKey makes; one that people made
	// up is found by trying, as in the file of API keys.
	PasswordHash [32]byte
}

// Config configures a [Server]. The zero value serves documents to everybody. Timeouts and numbers
// of connections that are zero are those of [loop.DefaultTimeout] and [loop.DefaultConnections].
type Config struct {
	// Users may log in. Their list is copied.
	Users []User
	// Gate knows API keys and tokens, which are passwords here as well: AUTH key, or AUTH
	// name key; AUTH token, or AUTH subject token. Nil: there are none.
	Gate *access.Gate
	// RequireAuth refuses all but AUTH, HELLO, QUIT and RESET before a login.
	RequireAuth bool
	// ClientLimit and CallerLimit bound the commands of one address, and those for
	// documents of one user or API key. Nil: no limit.
	ClientLimit, CallerLimit *limit.Limiter

	// RequestTimeout bounds the loading for one command.
	RequestTimeout time.Duration
	// IdleTimeout closes a connection that asks nothing (negative: never).
	// Clients of Redis keep idle connections in pools and expect them to live.
	IdleTimeout time.Duration
	// LoginTimeout closes a connection that has not logged in, where that is required,
	// counted from accept.
	LoginTimeout time.Duration
	// StallTimeout cuts off a client that does not read its answers.
	StallTimeout time.Duration
	// MaxConnections bounds the open connections. For one more an idle one is
	// closed; if there is none, the new one waits in the kernel's queue.
	MaxConnections int
	// MaxPerAddress bounds the connections of one address, as in [loop.Config]. If zero,
	// there is no limit.
	MaxPerAddress int
	// TrustedProxies stand for many clients: their connections are counted one by one.
	TrustedProxies []netip.Prefix
	// Budget bounds the memory that connections hold, together with other frontends. If
	// nil, the server has its own.
	Budget *loop.Budget
	// MaxWaiting bounds the documents that commands of all connections wait for
	// (20,000); past it a command is answered with -OVERLOADED.
	MaxWaiting int
	// MaxPending bounds the bytes of documents that were loaded and wait for their turn
	// and of large answers (64 KiB and more) that wait for clients to read (256 MiB): past
	// it connections are closed, of the address that owes most, and at one and a
	// half of it such answers are refused with -OVERLOADED.
	MaxPending int64

	// TLS makes connections encrypted. Nil: they are not.
	TLS *tls.Config
	// Goroutines gives each connection a goroutine instead of epoll, as with TLS and
	// on systems that have none.
	Goroutines bool

	// SlowerThan is the time above which a command is logged; 0 means 1 s, negative:
	// never.
	SlowerThan time.Duration
	// Requests gets a line for every command for documents and every failed login.
	// Nil: none. Whoever opened it closes it, after Shutdown.
	Requests *requestlog.Log
	// LoginFailed is called for each failed login: whose, by which credentials ("password",
	// which an API key may be, or "token"), and why. It must not wait. If nil, it is not called.
	LoginFailed func(client netip.Addr, rule, why string)
	Log         *slog.Logger
}

func (c Config) withDefaults() (Config, error) {
	for _, d := range []*time.Duration{&c.RequestTimeout, &c.StallTimeout, &c.LoginTimeout} {
		if *d <= 0 {
			*d = loop.DefaultTimeout
		}
	}
	if c.IdleTimeout == 0 {
		c.IdleTimeout = loop.DefaultTimeout
	}
	if c.SlowerThan == 0 {
		c.SlowerThan = time.Second
	}
	if c.MaxConnections <= 0 {
		c.MaxConnections = loop.DefaultConnections
	}
	if c.MaxWaiting <= 0 {
		c.MaxWaiting = 20_000
	}
	if c.MaxPending <= 0 {
		c.MaxPending = loop.DefaultLarge
	}
	if c.Budget == nil {
		c.Budget = loop.NewBudget(0)
	}
	if c.Log == nil {
		c.Log = slog.New(slog.DiscardHandler)
	}
	if c.RequireAuth && len(c.Users) == 0 && c.Gate == nil {
		return c, errors.New("resp: a login is required, but there are neither users nor API keys")
	}
	for i, u := range c.Users {
		if u.Name == "" || len(u.Name) > maxName || !printableName(u.Name) {
			return c, errors.New("resp: the name of user " + strconv.Itoa(i+1) + " is not 1 to " + strconv.Itoa(maxName) + " printable ASCII characters without blanks")
		}
	}
	return c, nil
}
