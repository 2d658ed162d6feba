package tarantool

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"time"
)

// ParseURL reads Options from a URL:
//
//	tarantool://user:password@host:3301?timeout=500ms&sockets=4
//	tarantool+tls://host:3301        the same over TLS
//	tarantool+unix:///run/app.sock   over a Unix socket
//
// Everything but the scheme may be left out. The query knows auth, sockets, timeout,
// dial_timeout, stall_timeout, backoff, max_backoff, retries, max_calls, max_bytes, max_reply,
// max_blocking, fail_fast and wait_when_full; durations are written as 500ms or 2s. Characters
// of a password that mean something in a URL are percent-encoded. Errors never show the
// password.
func ParseURL(text string) (Options, error) {
	var o Options
	u, err := url.Parse(text) // whose own error may show the password
	if err != nil {
		return o, errors.New("tarantool: not a valid URL, expected tarantool://user:password@host:port with special characters of the password percent-encoded")
	}
	switch u.Scheme {
	case "tarantool":
	case "tarantool+tls":
		o.TLS = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	case "tarantool+unix":
		if u.Host != "" || len(u.Path) < 2 {
			return o, errors.New("tarantool: a tarantool+unix URL needs the absolute path of a socket, as in tarantool+unix:///run/app.sock")
		}
		o.Addr = u.Path
	default:
		return o, errors.New("tarantool: the URL's scheme is not tarantool, tarantool+tls or tarantool+unix")
	}
	if u.Opaque != "" || u.Fragment != "" {
		return Options{}, fmt.Errorf("tarantool: expected %s:// and no fragment; write # in a password as %%23", u.Scheme)
	}
	if u.User != nil {
		o.User = u.User.Username()
		o.Password, _ = u.User.Password()
	}
	if o.Addr == "" {
		if err := o.setHost(u); err != nil {
			return Options{}, err
		}
	}
	if err := o.setQuery(u); err != nil {
		return Options{}, err
	}
	if err := o.check(); err != nil {
		return Options{}, err
	}
	return o, nil
}

func (o *Options) setHost(u *url.URL) error {
	if u.Path != "" && u.Path != "/" {
		return errors.New("tarantool: the URL has a path, expected none; write / in a password as %2F")
	}
	host, port := u.Hostname(), u.Port()
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "3301"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("tarantool: the URL's port is not a number from 1 to 65535")
	}
	o.Addr = net.JoinHostPort(host, port)
	return nil
}

// setQuery reads the query into the options.
func (o *Options) setQuery(u *url.URL) error {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("tarantool: the URL's query is not valid; write ? in a password as %3F")
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names) // so that the same URL gives the same error
	for _, name := range names {
		if len(values[name]) != 1 {
			return fmt.Errorf("tarantool: the URL's option %q stands there %d times, expected once", name, len(values[name]))
		}
		if err := o.setOption(name, values[name][0]); err != nil {
			return fmt.Errorf("tarantool: the URL's option %q: %w", name, err)
		}
	}
	return nil
}

// setOption sets the option of that name.
func (o *Options) setOption(name, value string) (err error) {
	numbers := map[string]*int{
		"sockets": &o.Sockets, "retries": &o.Retries, "max_calls": &o.MaxCalls, "max_bytes": &o.MaxBytes,
		"max_reply": &o.MaxReply, "max_blocking": &o.MaxBlocking, "window": &o.Window,
	}
	durations := map[string]*time.Duration{
		"timeout": &o.Timeout, "dial_timeout": &o.DialTimeout, "stall_timeout": &o.StallTimeout,
		"backoff": &o.Backoff, "max_backoff": &o.MaxBackoff,
	}
	switches := map[string]*bool{"fail_fast": &o.FailFast, "wait_when_full": &o.WaitWhenFull}
	if p := numbers[name]; p != nil {
		if *p, err = strconv.Atoi(value); err != nil {
			return errors.New("expected a number")
		}
		return nil
	}
	if p := durations[name]; p != nil {
		if *p, err = time.ParseDuration(value); err != nil {
			return errors.New("expected a duration such as 500ms or 2s")
		}
		return nil
	}
	if p := switches[name]; p != nil {
		if value != "true" && value != "false" && value != "1" && value != "0" {
			return errors.New("expected true or false")
		}
		*p = value == "true" || value == "1"
		return nil
	}
	if name == "auth" {
		o.Auth = AuthMethod(value)
		return nil
	}
	return errors.New("not known")
}
