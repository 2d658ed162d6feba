// Package config reads the gateway's configuration file.
//
// The file is YAML, read strictly: anything that the gateway would not obey is an error with its
// line, so that a misspelled "freshness" never silently becomes the default.
//
// Each part of [Config] is a struct with a method fields, a table with a row for each option.
// The parser, the writer, the defaults, the JSON Schema and the effect of a reload all follow from
// the rows; field.go and kinds.go define what they consist of. parse.go and value.go read YAML,
// write.go writes it, and difference.go says what a reload changes.
package config

import (
	"cmp"
	"encoding/json"
	"fmt"
	"path/filepath"
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Config is the configuration of a gateway. The zero value of every field but Origin and
// Resources means its default; see [Config.WithDefaults]. [Schema] describes the options of the
// file, which have the names of the fields; the comments of the fields add what Go programs need
// to know.
type Config struct {
	Origin      Origin        // The database that the documents are loaded from. Required.
	Freshness   time.Duration // The promise of resources without their own. Default 1 s.
	Resources   []Resource    // In file order; the index is the cache's ResourceID. At least one.
	MaxDocument int64         // The largest document, in bytes of JSON. Default 8 MiB.
	Tiers       Tiers
	Frontends   Frontends
	HTTP        HTTP
	Redis       Redis
	Thrift      Thrift
	Auth        Auth
	Tracing     Tracing
	Admin       Admin
	Drain       Drain
	Handover    string // The unix socket over which a gateway hands over to its successor. Default: none.
	Log         Log

	// Warnings are what the operator should know about the file itself, in sentences. [Load] sets
	// them; they are no part of the configuration.
	Warnings []string
}

func (c *Config) fields() []field {
	return []field{
		{Name: "origin", Value: object(c.Origin.fields), Required: true, Reload: AtRestart,
			Doc: "where the documents are loaded from", Check: c.Origin.checkFields},
		{Name: "freshness", Value: scalar(&c.Freshness, freshness()), Default: time.Second, Reload: AtReload,
			Doc: "the promise: a GET that begins later than this after a commit never returns the older version"},
		{Name: "resources", Value: c.resources(), Required: true,
			Doc: "the collections that are served, each under /{name}/{key}"},
		{Name: "max_document", Value: scalar(&c.MaxDocument, size(1<<10, 1<<30)), Default: int64(8 << 20), Reload: AtRestart,
			Doc: "the largest document that is served"},
		{Name: "tiers", Value: object(c.Tiers.fields), Reload: AtRestart,
			Doc: "the stores in front of the origin"},
		{Name: "frontends", Value: object(c.Frontends.fields), Reload: AtRestart,
			Doc: "the addresses that documents are served on"},
		{Name: "http", Value: object(c.HTTP.fields), Doc: "how documents are served over HTTP"},
		{Name: "redis", Value: object(c.Redis.fields), If: func() bool { return len(c.Frontends.Redis) > 0 },
			Doc: "how documents are served over the Redis protocol, beside frontends.redis; if omitted, with the defaults"},
		{Name: "thrift", Value: object(c.Thrift.fields), If: func() bool { return len(c.Frontends.Thrift) > 0 },
			Doc: "how documents are served to Thrift clients, beside frontends.thrift; if omitted, with the defaults"},
		{Name: "auth", Value: object(c.Auth.fields), Reload: AtReload,
			Doc: "how callers are identified; if omitted, they are not"},
		{Name: "tracing", Value: object(c.Tracing.fields), Reload: AtReload,
			Doc: "where spans of requests are sent, as OpenTelemetry over HTTP; if omitted, nowhere"},
		{Name: "admin", Value: c.Admin.setting(), Default: adminAddress,
			Doc: "the listener of operators: host:port, unix:path, or a mapping"},
		{Name: "drain", Value: object(c.Drain.fields), Doc: "how the gateway shuts down"},
		{Name: "handover", Value: scalar(&c.Handover, fileName("a file, relative to this one, such as run/handover.sock")), Reload: AtRestart,
			Doc: "the unix socket at which a running gateway gives its listening sockets to the one that replaces it (Linux), " +
				"best in a directory of the gateway's user or of root that no other user can write to, " +
				"otherwise in a private one that it makes there; if omitted, none"},
		{Name: "log", Value: object(c.Log.fields),
			Doc: "what is logged; except for requests, the log goes to standard error"},
	}
}

// freshness has a floor of twice the 100 ms after which the stream of changes is
// polled again: below it the promise could not be kept for long.
func freshness() kind[time.Duration] { return duration(200*time.Millisecond, time.Hour) }

// Default returns the configuration that an empty file would mean if its required
// fields were optional.
func Default() Config { return Config{}.WithDefaults() }

// WithDefaults returns a copy in which every zero field has its default.
// [Parse] has applied it already; a Config made in Go needs it once.
func (c Config) WithDefaults() Config {
	fill(c.fields())
	for i := range c.Resources {
		if r := &c.Resources[i]; r.Freshness == 0 {
			r.Freshness = c.Freshness
		}
	}
	if r, err := c.Origin.rules(); err == nil && r.defaults != nil {
		r.defaults(&c)
	}
	return c
}

// Path resolves the name of a file in c: it is relative to the directory of the configuration file, if
// that is known. "" stays "".
func (c *Config) Path(name string) string { return c.Origin.path(name) }

func (o *Origin) path(name string) string {
	if name == "" {
		return ""
	}
	name = filepath.FromSlash(name)
	if o.Dir != "" && !filepath.IsAbs(name) {
		name = filepath.Join(o.Dir, name)
	}
	return name
}

// MinFreshness returns the shortest promise of the resources that have one, or
// [Config.Freshness] if none has.
func (c *Config) MinFreshness() time.Duration {
	least := time.Duration(0)
	for i := range c.Resources {
		if r := &c.Resources[i]; !r.NoPromise && (least == 0 || r.Freshness < least) {
			least = r.Freshness
		}
	}
	return cmp.Or(least, c.Freshness)
}

// Declarations returns what origins and frontends need to know about the resources, in the order of
// Resources.
func (c *Config) Declarations() []resource.Resource {
	all := make([]resource.Resource, len(c.Resources))
	for i := range c.Resources {
		all[i] = c.Resources[i].Resource
	}
	return all
}

// Schema returns the JSON Schema (draft 2020-12) of the file, for editors.
func Schema() []byte {
	s := objectSchema(new(Config).fields())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Slipstream gateway configuration"
	s["$defs"] = schema{"child": objectSchema(childFields(&resource.Node{})), "field_ids": fieldIDsSchema()}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		// Strings, numbers and maps only; a test reads the result.
		return fmt.Appendf(nil, "{%q: %q}\n", "$comment", err)
	}
	return append(out, '\n')
}
