package redis

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"time"
)

// ParseURL reads Options from a URL:
//
//	redis://user:password@host:6379/2?timeout=500ms&client_name=api
//	rediss://host           the same over TLS
//	unix:///run/redis.sock?db=2
//
// Everything but the scheme may be left out. The query knows db, protocol,
// client_name, sockets, timeout, dial_timeout, stall_timeout, backoff,
// max_backoff, retries, max_calls, max_bytes, fail_fast and wait_when_full;
// durations are written as 500ms or 2s. Characters of a password that mean
// something in a URL are percent-encoded. Errors never show the password, not
// even where it is what makes the URL invalid.
func ParseURL(text string) (Options, error) {
	var o Options
	// The parts of net/url's own error may be parts of the password.
	u, err := url.Parse(text)
	if err != nil {
		return o, errors.New("redis: not a valid URL, expected redis://user:password@host:port/db with special characters of the password percent-encoded")
	}
	switch u.Scheme {
	case "redis":
	case "rediss":
		o.TLS = &tls.Config{ServerName: u.Hostname(), MinVersion: tls.VersionTLS12}
	case "unix":
	default:
		return o, errors.New("redis: the URL's scheme is not redis, rediss or unix")
	}
	if u.Opaque != "" || u.Fragment != "" {
		return o, fmt.Errorf("redis: expected %s:// and no fragment; write # in a password as %%23", u.Scheme)
	}
	if u.User != nil {
		o.Username = u.User.Username()
		o.Password, _ = u.User.Password()
	}
	if u.Scheme == "unix" {
		err = o.unixPath(u)
	} else {
		err = o.hostAndDB(u)
	}
	if err != nil {
		return Options{}, err
	}
	if err := o.query(u); err != nil {
		return Options{}, err
	}
	if err := o.check(); err != nil {
		return Options{}, err
	}
	return o, nil
}

func (o *Options) unixPath(u *url.URL) error {
	if u.Host != "" || len(u.Path) < 2 {
		return errors.New("redis: a unix URL needs the absolute path of a socket, as in unix:///run/redis.sock")
	}
	o.Addr = u.Path
	return nil
}

func (o *Options) hostAndDB(u *url.URL) error {
	host, port := u.Hostname(), u.Port()
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = "6379"
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return errors.New("redis: the URL's port is not a number from 1 to 65535")
	}
	o.Addr = net.JoinHostPort(host, port)
	path := strings.TrimSuffix(strings.TrimPrefix(u.Path, "/"), "/")
	if path == "" {
		return nil
	}
	// The path is not shown: behind an unescaped slash it is part of a password.
	db, err := strconv.ParseUint(path, 10, 31)
	if err != nil {
		return errors.New("redis: the URL's path is not the number of a database, as in redis://host/2")
	}
	o.DB = int(db)
	return nil
}

// urlOptions are the options that the query knows.
var urlOptions = []struct {
	name string
	set  func(o *Options, value string) error
}{
	{"db", intOption(func(o *Options) *int { return &o.DB })},
	{"protocol", intOption(func(o *Options) *int { return &o.Protocol })},
	{"client_name", func(o *Options, value string) error { o.ClientName = value; return nil }},
	{"sockets", intOption(func(o *Options) *int { return &o.Sockets })},
	{"timeout", durationOption(func(o *Options) *time.Duration { return &o.Timeout })},
	{"dial_timeout", durationOption(func(o *Options) *time.Duration { return &o.DialTimeout })},
	{"stall_timeout", durationOption(func(o *Options) *time.Duration { return &o.StallTimeout })},
	{"backoff", durationOption(func(o *Options) *time.Duration { return &o.Backoff })},
	{"max_backoff", durationOption(func(o *Options) *time.Duration { return &o.MaxBackoff })},
	{"retries", intOption(func(o *Options) *int { return &o.Retries })},
	{"max_calls", intOption(func(o *Options) *int { return &o.MaxCalls })},
	{"max_exclusive", intOption(func(o *Options) *int { return &o.MaxExclusive })},
	{"max_bytes", intOption(func(o *Options) *int { return &o.MaxBytes })},
	{"fail_fast", boolOption(func(o *Options) *bool { return &o.FailFast })},
	{"wait_when_full", boolOption(func(o *Options) *bool { return &o.WaitWhenFull })},
}

func intOption(field func(*Options) *int) func(*Options, string) error {
	return func(o *Options, value string) error {
		n, err := strconv.Atoi(value)
		if err != nil {
			return errors.New("expected a number")
		}
		*field(o) = n
		return nil
	}
}

func durationOption(field func(*Options) *time.Duration) func(*Options, string) error {
	return func(o *Options, value string) error {
		d, err := time.ParseDuration(value)
		if err != nil {
			return errors.New("expected a duration such as 500ms or 2s")
		}
		*field(o) = d
		return nil
	}
}

func boolOption(field func(*Options) *bool) func(*Options, string) error {
	return func(o *Options, value string) error {
		switch value {
		case "true", "1":
			*field(o) = true
		case "false", "0":
			*field(o) = false
		default:
			return errors.New("expected true or false")
		}
		return nil
	}
}

func (o *Options) query(u *url.URL) error {
	values, err := url.ParseQuery(u.RawQuery)
	if err != nil {
		return errors.New("redis: the URL's query is not valid; write ? in a password as %3F")
	}
	if strings.Contains(u.RawQuery, "@") {
		return errors.New("redis: the URL's query holds an @; write ? in a password as %3F")
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names) // so that the same URL gives the same error
	for _, name := range names {
		i := slices.IndexFunc(urlOptions, func(known struct {
			name string
			set  func(o *Options, value string) error
		}) bool {
			return known.name == name
		})
		if i < 0 {
			return fmt.Errorf("redis: unknown option %q in the URL, expected one of %s", name, optionNames())
		}
		if len(values[name]) > 1 {
			return fmt.Errorf("redis: option %s stands %d times in the URL", name, len(values[name]))
		}
		if name == "db" && o.DB != 0 {
			return errors.New("redis: the URL names the database in its path and in option db")
		}
		if err := urlOptions[i].set(o, values[name][0]); err != nil {
			return fmt.Errorf("redis: option %s of the URL is %q, %w", name, values[name][0], err)
		}
	}
	return nil
}

func optionNames() string {
	var names []string
	for _, option := range urlOptions {
		names = append(names, option.name)
	}
	return strings.Join(names, ", ")
}
