package respfront

import (
	"cmp"
	"errors"
	"strconv"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
)

// User is a user that may log in with AUTH.
type User struct {
	// Name is the user's name in AUTH; "default" is the user of AUTH without a name. The rules
	// of resources treat it as an API key of that name. A name may be listed twice, so that a
	// new password can be issued before the old one is removed.
	Name string
	// PasswordHash is the SHA-256 of the password. A hash reveals nothing about a password with
	// 128 random bits or more, such as those made by access.NewKey; a password that a person
	// chose can be guessed, as in the file of API keys.
	PasswordHash [32]byte
}

// Config configures a [Server]. The zero value serves documents to anyone.
type Config struct {
	frontend.ConnConfig
	// RequestConfig takes effect with a [View]. The API keys and tokens of its Gate are passwords
	// here: AUTH key, or AUTH name key; AUTH token, or AUTH subject token.
	frontend.RequestConfig

	// Users may log in. Their list is copied.
	Users []User
	// RequireAuth refuses all commands but AUTH, HELLO, QUIT and RESET before a login.
	RequireAuth bool
	// LoginTimeout closes a connection that has not logged in, where that is required, counted
	// from accept. If zero, it defaults to [loop.DefaultTimeout].
	LoginTimeout time.Duration
	// MaxWaiting bounds the documents that commands of all connections wait for. Commands that
	// exceed it are answered with -OVERLOADED. If zero, it defaults to 20,000.
	MaxWaiting int
}

func (c Config) withDefaults() Config {
	c.ConnConfig, c.RequestConfig = c.ConnConfig.WithDefaults(), c.RequestConfig.WithDefaults()
	c.LoginTimeout = cmp.Or(max(c.LoginTimeout, 0), loop.DefaultTimeout)
	c.MaxWaiting = cmp.Or(max(c.MaxWaiting, 0), 20_000)
	return c
}

// check returns an error if clients could not log in.
func (c *Config) check() error {
	if c.RequireAuth && len(c.Users) == 0 && c.Gate == nil {
		return errors.New("resp: a login is required, but there are neither users nor API keys")
	}
	for i, u := range c.Users {
		if u.Name == "" || len(u.Name) > maxName || !printableName(u.Name) {
			return errors.New("resp: the name of user " + strconv.Itoa(i+1) + " is not 1 to " + strconv.Itoa(maxName) + " printable ASCII characters without spaces")
		}
	}
	return nil
}
