package config

import (
	"errors"
	"net/url"
	"runtime"
	"strings"
)

// This file has the rules for SQLite.

// expectedSQLite is part of messages about URLs that are certainly meant for
// SQLite.
const expectedSQLite = `"sqlite:path" (relative to the configuration file) or "sqlite:///absolute/path"`

var sqliteRules = originRules{
	driver:  SQLite,
	schemes: []string{"sqlite"},
	check:   func(o Origin) error { _, err := sqlitePath(o); return err },
	redact: func(raw string) (string, bool) {
		_, err := sqlitePath(Origin{URL: raw})
		return raw, err == nil // it cannot hold a password
	},
	noStatement: `statements need arrays of keys, which SQLite does not support; expected "table", or an origin.url of PostgreSQL`,
}

// SQLitePath returns the file that URL names, made absolute by Dir if that is
// set. The errors do not repeat the URL, which may hold a password.
func (o Origin) SQLitePath() (string, error) {
	if r, err := o.rules(); err != nil {
		return "", err
	} else if r.driver != SQLite {
		return "", errors.New("not an SQLite file; expected " + expectedSQLite)
	}
	return sqlitePath(o)
}

// sqlitePath is SQLitePath of a URL whose scheme is the right one.
func sqlitePath(o Origin) (string, error) {
	_, rest, _ := strings.Cut(o.URL, ":")
	if hostPath, ok := strings.CutPrefix(rest, "//"); ok {
		if !strings.HasPrefix(hostPath, "/") {
			return "", errors.New(`an SQLite file has no host; expected "sqlite:path" or three slashes, "sqlite:///absolute/path"`)
		}
		rest = hostPath
	}
	if strings.ContainsAny(rest, "?#") {
		return "", errors.New(`parameters are not supported; expected only a path ("?" and "#" in a file name are written %3F and %23)`)
	}
	path, err := url.PathUnescape(rest)
	switch {
	case err != nil:
		return "", errors.New(`a "%" that is not followed by two hexadecimal digits; expected "%25" for a percent sign`)
	case path == "" || strings.HasSuffix(path, "/"):
		return "", errors.New("no file name; expected " + expectedSQLite)
	case path == ":memory:":
		return "", errors.New("no other program can write to a database in memory; expected a file")
	case strings.ContainsRune(path, 0):
		return "", errors.New("a NUL byte in a file name; expected a path")
	}
	if runtime.GOOS == "windows" && len(path) > 2 && path[0] == '/' && path[2] == ':' {
		path = path[1:] // sqlite:///C:/data/shop.db
	}
	return o.path(path), nil
}
