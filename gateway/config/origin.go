package config

import (
	"errors"
	"fmt"
	"net/url"
	"path/filepath"
	"runtime"
	"strings"
)

// supportedOrigins is part of every message about a scheme.
const supportedOrigins = `"sqlite:path" (relative to the configuration file), "sqlite:///absolute/path" or ` + postgresExample

// expectedSQLite is part of messages about what is SQLite for certain.
const expectedSQLite = `"sqlite:path" (relative to the configuration file) or "sqlite:///absolute/path"`

// Driver is the kind of a database.
type Driver string

// The drivers that a URL can name.
const (
	SQLite     Driver = "sqlite"
	PostgreSQL Driver = "postgres"
)

// Driver returns the kind of database that URL leads to, and what is wrong with
// the URL. The errors do not repeat the URL, which may hold a password.
func (o Origin) Driver() (Driver, error) {
	driver, err := o.scheme()
	switch {
	case err != nil:
		return "", err
	case driver == PostgreSQL:
		_, err = parsePostgresURL(o.URL)
	default:
		_, err = o.SQLitePath()
	}
	return driver, err
}

// scheme returns the driver by the URL's scheme only.
func (o Origin) scheme() (Driver, error) {
	scheme, rest, found := strings.Cut(o.URL, ":")
	switch {
	case !found || scheme == "":
		return "", fmt.Errorf("no scheme; expected %s", supportedOrigins)
	case strings.EqualFold(scheme, "sqlite"):
		return SQLite, nil
	case !strings.EqualFold(scheme, "postgres") && !strings.EqualFold(scheme, "postgresql"):
		return "", fmt.Errorf("scheme %s is not supported; expected %s", quoteScheme(scheme), supportedOrigins)
	case !strings.HasPrefix(rest, "//"):
		return "", errors.New(`no "//" after the scheme; expected ` + postgresExample)
	}
	return PostgreSQL, nil
}

// isPostgres reports whether the fields of PostgreSQL apply.
func (o Origin) isPostgres() bool {
	driver, err := o.scheme()
	return err == nil && driver == PostgreSQL
}

// SQLitePath returns the file that URL names, made absolute by Dir if that is
// set. The errors do not repeat the URL, which may hold a password.
func (o Origin) SQLitePath() (string, error) {
	if driver, err := o.scheme(); err != nil {
		return "", err
	} else if driver != SQLite {
		return "", errors.New("not an SQLite file; expected " + expectedSQLite)
	}
	_, rest, _ := strings.Cut(o.URL, ":")
	if hostPath, ok := strings.CutPrefix(rest, "//"); ok {
		if !strings.HasPrefix(hostPath, "/") {
			return "", errors.New(`an SQLite file has no host; expected "sqlite:path" or three slashes, "sqlite:///absolute/path"`)
		}
		rest = hostPath
	}
	if strings.ContainsAny(rest, "?#") {
		return "", errors.New(`parameters are not supported; expected a path alone ("?" and "#" in a file name are written %3F and %23)`)
	}
	path, err := url.PathUnescape(rest)
	switch {
	case err != nil:
		return "", errors.New(`a "%" that is not followed by two hexadecimal digits; expected "%25" for the sign itself`)
	case path == "" || strings.HasSuffix(path, "/"):
		return "", errors.New("no file name; expected " + expectedSQLite)
	case path == ":memory:":
		return "", errors.New("a database in memory has no other writers; expected a file")
	case strings.ContainsRune(path, 0):
		return "", errors.New("a NUL byte in a file name; expected a path")
	}
	if runtime.GOOS == "windows" && len(path) > 2 && path[0] == '/' && path[2] == ':' {
		path = path[1:] // sqlite:///C:/data/shop.db
	}
	path = filepath.FromSlash(path)
	if o.Dir != "" && !filepath.IsAbs(path) {
		path = filepath.Join(o.Dir, path)
	}
	return path, nil
}

// quoteScheme quotes a scheme only if it looks like one: what stands before the
// first colon of a mistyped URL can be a secret.
func quoteScheme(s string) string {
	for _, c := range s {
		if c < 'a' || c > 'z' {
			return "of this URL"
		}
	}
	if len(s) > 16 {
		return "of this URL"
	}
	return `"` + s + `"`
}

// redactURL hides the password and every parameter that holds one. A URL that
// cannot be read is hidden as a whole.
func redactURL(raw string) string {
	if _, err := (Origin{URL: raw}).SQLitePath(); err == nil || raw == "" {
		return raw // there is no place for a password
	}
	if u, err := parsePostgresURL(raw); err == nil {
		return u.redacted()
	}
	return hidden
}

const hidden = "hidden"

func soundsSecret(name string) bool {
	name = strings.ToLower(name)
	for _, word := range []string{"pass", "pwd", "secret", "token", "key"} {
		if strings.Contains(name, word) {
			return true
		}
	}
	return false
}
