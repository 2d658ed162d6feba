package config

import (
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"
)

// Origin says where the documents come from. The fields after URL are only for
// PostgreSQL.
type Origin struct {
	// URL is "sqlite:path" (relative to Dir), "sqlite:///absolute/path" or
	// "postgres://user@host/database", with several hosts and parameters as PostgreSQL's own
	// programs accept them. It may hold a password: print it only through [Config.Redacted].
	URL         string
	StreamURL   string        // Where the stream of changes connects. Default: URL.
	Notify      bool          // Makes triggers send NOTIFY, which makes commits wait for one another.
	Poll        time.Duration // How often the stream polls for changes. Default 25 ms.
	Connections int           // Maximum number of concurrent loads. Default: the sum of Load.Concurrency, at most 16.
	KeepChanges time.Duration // How long rows of the change table are kept. Default 24 h.
	KeepBytes   int64         // Size of these rows above which the oldest are deleted. Default 1 GiB.
	Dir         string        // The directory of the file, as [Load] sets it. Default: the working directory.
}

func (o *Origin) fields() []field {
	postgres := o.isPostgres // an SQLite file has no use for the others
	return []field{
		{Name: "url", Value: scalar(&o.URL, databaseURL(supportedOrigins)), Always: true, Required: true,
			Doc:   "the database: " + supportedOrigins,
			Check: func(p *parser, v value) { _, err := o.Driver(); p.failIf(v, err) }},
		{Name: "stream_url", Value: scalar(&o.StreamURL, databaseURL(postgresExample)), If: postgres,
			Doc: "where the stream of changes connects: directly to the server if url leads through a pooler; " +
				"if omitted, url",
			Check: func(p *parser, v value) { _, err := parsePostgresURL(o.StreamURL); p.failIf(v, err) }},
		{Name: "notify", Value: scalar(&o.Notify, truth()), If: postgres,
			Doc: "makes the triggers send NOTIFY, so that changes are known before the next poll; " +
				"commits then wait for one another"},
		{Name: "poll", Value: scalar(&o.Poll, duration(5*time.Millisecond, time.Second)), If: postgres,
			Default: 25 * time.Millisecond,
			Doc:     "how often the stream polls for changes, at most an eighth of the shortest freshness"},
		{Name: "connections", Value: scalar(&o.Connections, count(1, 1024)), If: postgres,
			Doc: "the maximum of concurrent loads; if omitted, the sum of load.concurrency of all resources, at most 16"},
		{Name: "keep_changes", Value: scalar(&o.KeepChanges, duration(10*time.Minute, 720*time.Hour)), If: postgres,
			Default: 24 * time.Hour,
			Doc: "how long rows of the change table are kept; " +
				"a gateway that is disconnected for longer starts with an empty cache"},
		{Name: "keep_bytes", Value: scalar(&o.KeepBytes, size(16<<20, 1<<40)), If: postgres, Default: int64(1 << 30),
			Doc: "the size of these rows in the database above which the oldest are deleted, regardless of their age"},
	}
}

// checkFields refuses the fields of PostgreSQL with another database.
func (o *Origin) checkFields(p *parser, v value) {
	for _, f := range o.fields() {
		if one, found := v.child(f.Name); found && !f.applies() {
			p.failKey(one, "only PostgreSQL supports this; expected it with an origin.url such as %s", postgresExample)
		}
	}
}

// databaseURL is the kind of a URL that may hold a password. A separate check reports what is
// wrong with it, without repeating any of it.
func databaseURL(expected string) kind[string] {
	return kind[string]{
		expected: expected,
		parse: func(t text) (string, string) {
			if t.number || t.truth {
				return "", unfit
			}
			return t.s, ""
		},
		schema: schema{"type": "string", "minLength": 1},
	}
}

func (p *parser) failIf(v value, err error) {
	if err != nil {
		p.failAt(v, "%s", err)
	}
}

// pace refuses a stream that would poll too seldom for the shortest promise: an
// eighth of it leaves room for polls that are late or fail.
func (p *parser) pace(root value, c *Config) {
	least := c.MinFreshness()
	if c.Origin.Poll > least/8 {
		p.failAt(within(root, "origin", "poll"),
			"%s, and the shortest freshness of a resource is %s; expected at most an eighth of it, %s",
			formatDuration(c.Origin.Poll), formatDuration(least), formatDuration(least/8))
	}
}

// supportedOrigins is part of every message about a scheme.
const supportedOrigins = `"sqlite:path" (relative to the configuration file), "sqlite:///absolute/path" or ` + postgresExample

// Driver is the kind of a database.
type Driver string

// The drivers that a URL can name.
const (
	SQLite     Driver = "sqlite"
	PostgreSQL Driver = "postgres"
)

// originRules are what a configuration must know about a kind of database. Each kind has them in
// its own file; all but driver, schemes, check and redact are optional.
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

// rules returns those of the database, which only depend on the scheme of the URL.
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
func (o *Origin) isPostgres() bool {
	r, err := o.rules()
	return err == nil && r.driver == PostgreSQL
}

// quoteScheme quotes a scheme only if it looks like one: the text before the first
// colon of a mistyped URL can be a secret.
func quoteScheme(s string) string {
	if len(s) > 16 || strings.ContainsFunc(s, func(c rune) bool { return c < 'a' || c > 'z' }) {
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
	return slices.ContainsFunc([]string{"pass", "pwd", "secret", "token", "key"},
		func(word string) bool { return strings.Contains(strings.ToLower(name), word) })
}
