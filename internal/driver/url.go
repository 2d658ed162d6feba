package driver

import (
	"crypto/tls"
	"errors"
	"fmt"
	"net"
	"net/url"
	"reflect"
	"slices"
	"strconv"
	"strings"
	"time"
)

// URLs parses the URLs of a driver whose options have the type O. Errors never quote the URL,
// because any part of it may belong to a password that was not escaped. They show only names and
// values of options in the query.
type URLs[O any] struct {
	// Driver is the name at the start of errors.
	Driver string
	// Plain, Secure and Unix are the schemes for TCP, TLS and Unix sockets.
	Plain, Secure, Unix string
	// Port is the default port.
	Port string
	// Path parses the path of a URL with a host; it is not called for an empty path. If nil, the
	// URL must have no path.
	Path func(o *O, path string) error
	// Example is an example of a URL.
	Example string
	// Options are the options of the query.
	Options []URLOption[O]
}

// A URLOption is an option in the query of a URL.
type URLOption[O any] struct {
	Name string
	// Set parses the value into its field. Its error says what was expected.
	Set func(o *O, value string) error
}

// A Target is the part of a URL without options.
type Target struct {
	Addr           string
	User, Password string
	TLS            *tls.Config
}

// Parse parses a URL: it stores the query and the path in o, and returns the rest.
func (u *URLs[O]) Parse(text string, o *O) (t Target, err error) {
	parsed, err := url.Parse(text) // its error may show the password
	if err != nil {
		return t, fmt.Errorf("%s: not a valid URL, expected %s with special characters of the password percent-encoded", u.Driver, u.Example)
	}
	switch parsed.Scheme {
	case u.Plain, u.Unix:
	case u.Secure:
		t.TLS = &tls.Config{ServerName: parsed.Hostname(), MinVersion: tls.VersionTLS12}
	default:
		return t, fmt.Errorf("%s: the URL's scheme is not %s, %s or %s", u.Driver, u.Plain, u.Secure, u.Unix)
	}
	if parsed.Opaque != "" || parsed.Fragment != "" {
		return t, fmt.Errorf("%s: expected %s:// and no fragment; write # in a password as %%23", u.Driver, parsed.Scheme)
	}
	if parsed.User != nil {
		t.User = parsed.User.Username()
		t.Password, _ = parsed.User.Password()
	}
	if t.Addr, err = u.addr(parsed, o); err != nil {
		return t, err
	}
	return t, u.query(parsed.RawQuery, o)
}

// addr returns the address, and passes the path to u.Path.
func (u *URLs[O]) addr(parsed *url.URL, o *O) (string, error) {
	if parsed.Scheme == u.Unix {
		if parsed.Host != "" || len(parsed.Path) < 2 {
			return "", fmt.Errorf("%s: a %s URL needs the absolute path of a socket, as in %[2]s:///run/server.sock", u.Driver, u.Unix)
		}
		return parsed.Path, nil
	}
	host, port := parsed.Hostname(), parsed.Port()
	if host == "" {
		host = "127.0.0.1"
	}
	if port == "" {
		port = u.Port
	}
	if n, err := strconv.ParseUint(port, 10, 16); err != nil || n == 0 {
		return "", fmt.Errorf("%s: the URL's port is not a number from 1 to 65535", u.Driver)
	}
	if path := strings.TrimSuffix(strings.TrimPrefix(parsed.Path, "/"), "/"); path != "" {
		if u.Path == nil {
			return "", fmt.Errorf("%s: the URL has a path, expected none; write / in a password as %%2F", u.Driver)
		}
		if err := u.Path(o, path); err != nil {
			return "", fmt.Errorf("%s: %w", u.Driver, err)
		}
	}
	return net.JoinHostPort(host, port), nil
}

// query parses the query into o.
func (u *URLs[O]) query(text string, o *O) error {
	values, err := url.ParseQuery(text)
	if err != nil {
		return fmt.Errorf("%s: the URL's query is not valid; write ? in a password as %%3F", u.Driver)
	}
	if strings.Contains(text, "@") {
		return fmt.Errorf("%s: the URL's query has an @; write ? in a password as %%3F", u.Driver)
	}
	names := make([]string, 0, len(values))
	for name := range values {
		names = append(names, name)
	}
	slices.Sort(names) // the same URL always gets the same error
	for _, name := range names {
		at := slices.IndexFunc(u.Options, func(known URLOption[O]) bool { return known.Name == name })
		if at < 0 {
			return fmt.Errorf("%s: unknown option %q in the URL, expected one of %s", u.Driver, name, u.names())
		}
		if n := len(values[name]); n > 1 {
			return fmt.Errorf("%s: option %s appears %d times in the URL, expected once", u.Driver, name, n)
		}
		if err := u.Options[at].Set(o, values[name][0]); err != nil {
			return fmt.Errorf("%s: option %s of the URL is %q, %w", u.Driver, name, values[name][0], err)
		}
	}
	return nil
}

// names lists the options.
func (u *URLs[O]) names() string {
	names := make([]string, 0, len(u.Options))
	for _, option := range u.Options {
		names = append(names, option.Name)
	}
	return strings.Join(names, ", ")
}

// CommonFields are the fields that the options of every driver have, for [Fields].
const CommonFields = "sockets timeout dial_timeout stall_timeout backoff max_backoff retries max_calls max_bytes no_wait fail_fast wait_when_full"

// Fields returns options that set fields of O, by their names in URLs: max_calls sets MaxCalls. The
// fields are numbers, durations, booleans or strings.
func Fields[O any](names string) (options []URLOption[O]) {
	for name := range strings.FieldsSeq(names) {
		field := ""
		for word := range strings.SplitSeq(name, "_") {
			field += strings.ToUpper(word[:1]) + word[1:]
		}
		options = append(options, URLOption[O]{name, func(o *O, value string) error {
			return set(reflect.ValueOf(o).Elem().FieldByName(field), value)
		}})
	}
	return options
}

// set parses the value into a field.
func set(field reflect.Value, value string) (err error) {
	switch p := field.Addr().Interface().(type) {
	case *int:
		if *p, err = strconv.Atoi(value); err != nil {
			return errors.New("expected a number")
		}
	case *time.Duration:
		if *p, err = time.ParseDuration(value); err != nil {
			return errors.New("expected a duration such as 500ms or 2s")
		}
	case *bool:
		switch value {
		case "true", "1":
			*p = true
		case "false", "0":
			*p = false
		default:
			return errors.New("expected true or false")
		}
	default:
		field.SetString(value)
	}
	return nil
}
