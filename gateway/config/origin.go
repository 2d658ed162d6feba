package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
)

// supportedOrigins is part of every message about a scheme.
const supportedOrigins = `"sqlite:path" (relative to the configuration file), "sqlite:///absolute/path" or ` + postgresExample

// Driver is the kind of a database.
type Driver string

// The drivers that a URL can name.
const (
	SQLite     Driver = "sqlite"
	PostgreSQL Driver = "postgres"
)

// originRules are what a configuration must know of a kind of database. Each kind has them in
// a file of its own; all but driver, schemes, check and redact may be left out.
type originRules struct {
	driver  Driver
	schemes []string // of the URL, in lower case
	// needsHost is what is wrong with a URL without "//" after its scheme.
	needsHost string
	// check returns what is wrong with the URL.
	check func(Origin) error
	// redact returns a URL without its secrets; ok is false if it cannot be read.
	redact func(raw string) (redacted string, ok bool)
	// noStatement is why a resource cannot have a statement.
	noStatement string
	// defaults fills in what the table of fields cannot.
	defaults func(*Config)
	// restarts reports whether a change that a reload could make otherwise needs a restart.
	restarts func(running *Config, ch *Change) bool
}

// origins are the kinds of databases that a URL can name.
var origins = []*originRules{&sqliteRules, &postgresRules}

// Driver returns the kind of database that URL leads to, and what is wrong with
// the URL. The errors do not repeat the URL, which may hold a password.
func (o Origin) Driver() (Driver, error) {
	r, err := o.rules()
	if err != nil {
		return "", err
	}
	return r.driver, r.check(o)
}

// rules returns those of the database, by the scheme of the URL alone.
func (o Origin) rules() (*originRules, error) {
	scheme, rest, found := strings.Cut(o.URL, ":")
	if !found || scheme == "" {
		return nil, fmt.Errorf("no scheme; expected %s", supportedOrigins)
	}
	i := slices.IndexFunc(origins, func(r *originRules) bool { return slices.Contains(r.schemes, strings.ToLower(scheme)) })
	switch {
	case i < 0:
		return nil, fmt.Errorf("scheme %s is not supported; expected %s", quoteScheme(scheme), supportedOrigins)
	case origins[i].needsHost != "" && !strings.HasPrefix(rest, "//"):
		return nil, errors.New(origins[i].needsHost)
	}
	return origins[i], nil
}

// isPostgres reports whether the fields of PostgreSQL apply.
func (o Origin) isPostgres() bool {
	r, err := o.rules()
	return err == nil && r.driver == PostgreSQL
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
	if raw == "" {
		return ""
	}
	if r, err := (Origin{URL: raw}).rules(); err == nil {
		if redacted, ok := r.redact(raw); ok {
			return redacted
		}
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
