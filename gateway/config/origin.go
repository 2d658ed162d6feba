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
const supportedOrigins = `"sqlite:path" (relative to the configuration file) or "sqlite:///absolute/path"`

// SQLitePath returns the file that URL names, made absolute by Dir if that is
// set. The errors do not repeat the URL, which may hold a password.
func (o Origin) SQLitePath() (string, error) {
	scheme, rest, found := strings.Cut(o.URL, ":")
	if !found || scheme == "" {
		return "", fmt.Errorf("no scheme; expected %s", supportedOrigins)
	}
	if !strings.EqualFold(scheme, "sqlite") {
		return "", fmt.Errorf("scheme %s is not supported; expected %s", quoteScheme(scheme), supportedOrigins)
	}
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
		return "", errors.New("no file name; expected " + supportedOrigins)
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

// redactURL hides the password and every parameter whose name sounds like one.
// A URL that cannot be read is hidden as a whole.
func redactURL(raw string) string {
	u, err := url.Parse(raw)
	if err != nil {
		if strings.HasPrefix(raw, "sqlite:") {
			return raw // an odd file name; there is no place for a password
		}
		return hidden
	}
	if u.User != nil {
		if _, has := u.User.Password(); has {
			u.User = url.UserPassword(u.User.Username(), hidden)
		}
	}
	if u.RawQuery != "" {
		q := u.Query()
		for name := range q {
			if soundsSecret(name) {
				q.Set(name, hidden)
			}
		}
		u.RawQuery = q.Encode()
	}
	if u.User == nil && u.RawQuery == "" {
		return raw
	}
	return u.String()
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
