package redis

import (
	"errors"
	"strconv"

	"github.com/slipstream-go/slipstream/internal/driver"
)

// ParseURL parses Options from a URL:
//
//	redis://user:password@host:6379/2?timeout=500ms&client_name=api
//	rediss://host           the same over TLS
//	unix:///run/redis.sock?db=2
//
// Everything except the scheme may be omitted. The query accepts db, protocol, client_name,
// sockets, timeout, dial_timeout, stall_timeout, backoff, max_backoff, retries, max_calls,
// max_exclusive, max_bytes, no_wait, fail_fast and wait_when_full; durations are written as 500ms
// or 2s. Characters of a password that are special in a URL must be percent-encoded. Errors never
// contain the password, even if it is what makes the URL invalid.
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
	Driver: "redis", Plain: "redis", Secure: "rediss", Unix: "unix", Port: "6379", Path: setPath,
	Example: "redis://user:password@host:port/db",
	Options: append(driver.Fields[Options](driver.CommonFields+" protocol client_name max_exclusive"),
		driver.URLOption[Options]{Name: "db", Set: setDB}),
}

// setPath parses the number of the database from the path. Errors do not show the path, because
// after an unescaped slash it is a part of the password.
func setPath(o *Options, path string) error {
	db, err := strconv.ParseUint(path, 10, 31)
	if err != nil {
		return errors.New("the URL's path is not the number of a database, as in redis://host/2")
	}
	o.DB = int(db)
	return nil
}

func setDB(o *Options, value string) error {
	if o.DB != 0 {
		return errors.New("but the path names a database, too; expected one of them")
	}
	db, err := strconv.Atoi(value)
	if err != nil {
		return errors.New("expected a number")
	}
	o.DB = db
	return nil
}
