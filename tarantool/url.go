package tarantool

import "github.com/slipstream-go/slipstream/internal/driver"

// ParseURL parses Options from a URL:
//
//	tarantool://user:password@host:3301?timeout=500ms&sockets=4
//	tarantool+tls://host:3301        the same over TLS
//	tarantool+unix:///run/app.sock   over a Unix socket
//
// Everything except the scheme is optional. The query accepts auth, sockets, timeout, dial_timeout,
// stall_timeout, backoff, max_backoff, retries, max_calls, max_bytes, max_reply, max_blocking,
// window, no_wait, fail_fast and wait_when_full; durations are written as 500ms or 2s. Characters
// of a password that are special in a URL must be percent-encoded. Errors never contain the
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
	Options: driver.Fields[Options](driver.CommonFields + " auth window max_blocking max_reply"),
}
