package tarantool

import (
	"time"

	"github.com/slipstream-go/slipstream/internal/driver"
)

// ParseURL reads Options from a URL:
//
//	tarantool://user:password@host:3301?timeout=500ms&sockets=4
//	tarantool+tls://host:3301        the same over TLS
//	tarantool+unix:///run/app.sock   over a Unix socket
//
// Everything but the scheme may be left out. The query knows auth, sockets, timeout,
// dial_timeout, stall_timeout, backoff, max_backoff, retries, max_calls, max_bytes, max_reply,
// max_blocking, window, no_wait, fail_fast and wait_when_full; durations are written as 500ms or 2s. Characters
// of a password that mean something in a URL are percent-encoded. Errors never show the
// password.
func ParseURL(text string) (Options, error) {
	var o Options
	t, err := urls.Parse(text, &o)
	if err != nil {
		return Options{}, err
	}
	o.Addr, o.User, o.Password, o.TLS = t.Addr, t.User, t.Password, t.TLS
	if err := o.check(); err != nil {
		return Options{}, err
	}
	return o, nil
}

var urls = driver.URLs[Options]{
	Driver: "tarantool", Plain: "tarantool", Secure: "tarantool+tls", Unix: "tarantool+unix", Port: "3301",
	Example: "tarantool://user:password@host:port",
	Options: []driver.URLOption[Options]{
		driver.TextOption("auth", func(o *Options) *AuthMethod { return &o.Auth }),
		driver.IntOption("sockets", func(o *Options) *int { return &o.Sockets }),
		driver.IntOption("window", func(o *Options) *int { return &o.Window }),
		driver.DurationOption("timeout", func(o *Options) *time.Duration { return &o.Timeout }),
		driver.DurationOption("dial_timeout", func(o *Options) *time.Duration { return &o.DialTimeout }),
		driver.DurationOption("stall_timeout", func(o *Options) *time.Duration { return &o.StallTimeout }),
		driver.DurationOption("backoff", func(o *Options) *time.Duration { return &o.Backoff }),
		driver.DurationOption("max_backoff", func(o *Options) *time.Duration { return &o.MaxBackoff }),
		driver.IntOption("retries", func(o *Options) *int { return &o.Retries }),
		driver.IntOption("max_calls", func(o *Options) *int { return &o.MaxCalls }),
		driver.IntOption("max_bytes", func(o *Options) *int { return &o.MaxBytes }),
		driver.IntOption("max_reply", func(o *Options) *int { return &o.MaxReply }),
		driver.IntOption("max_blocking", func(o *Options) *int { return &o.MaxBlocking }),
		driver.BoolOption("no_wait", func(o *Options) *bool { return &o.NoWait }),
		driver.BoolOption("fail_fast", func(o *Options) *bool { return &o.FailFast }),
		driver.BoolOption("wait_when_full", func(o *Options) *bool { return &o.WaitWhenFull }),
	},
}
