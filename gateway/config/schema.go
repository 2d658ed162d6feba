package config

import (
	"encoding/json"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Bounds of what a file may ask for. They are far above need; they turn a slip
// of the hand into a message instead of a gateway that cannot start.
const (
	maxResources = 1000
	maxChildren  = 64
	maxColumns   = 2000 // SQLite's default SQLITE_MAX_COLUMN
	maxKey       = 16
)

// configFields is the whole file: parser, writer and JSON Schema follow it.
func configFields() []field[Config] {
	def := Default()
	return []field[Config]{
		originField(),
		withDefault(one("freshness", "the promise: a GET that begins more than this after a commit never returns the older version",
			freshness(), func(c *Config) *time.Duration { return &c.Freshness }), &def),
		required(resourcesField()),
		withDefault(one("max_document", "the largest document that is served",
			size(1<<10, 1<<30), func(c *Config) *int64 { return &c.MaxDocument }), &def),
		object("tiers", "the stores in front of the origin", tierFields,
			func(c *Config) *Tiers { return &c.Tiers }),
		object("frontends", "the addresses that documents are served on", frontendFields,
			func(c *Config) *Frontends { return &c.Frontends }),
		object("http", "how documents are served over HTTP", httpFields,
			func(c *Config) *HTTP { return &c.HTTP }),
		sparse(object("redis", "how documents are served over the Redis protocol, beside frontends.redis; left out: with the defaults", redisFields,
			func(c *Config) *Redis { return &c.Redis })),
		sparse(object("auth", "how callers are identified; if left out, they are not", authFields,
			func(c *Config) *Auth { return &c.Auth })),
		sparse(object("tracing", "where spans of requests are sent, as OpenTelemetry over HTTP; left out: nowhere", tracingFields,
			func(c *Config) *Tracing { return &c.Tracing })),
		adminField(),
		object("drain", "how the gateway ends", drainFields,
			func(c *Config) *Drain { return &c.Drain }),
		handoverField(),
		object("log", "what is logged, to standard error but for requests", logFields,
			func(c *Config) *Log { return &c.Log }),
	}
}

// freshness has a floor of twice the 100 ms after which the stream of changes is
// asked again: below it the promise could not be kept for long.
func freshness() kind[time.Duration] { return duration(200*time.Millisecond, time.Hour) }

func frontendFields() []field[Frontends] {
	def := Default()
	return []field[Frontends]{
		withDefault(listenersField("http", "where HTTP/JSON is served: "+expectedListener,
			"127.0.0.1:8080 or :8080", func(f *Frontends) *Listeners { return &f.HTTP }), &def.Frontends),
		listenersField("redis", "where the Redis protocol is served: "+expectedListener+"; left out: nowhere",
			"127.0.0.1:6379", func(f *Frontends) *Listeners { return &f.Redis }),
	}
}

func resourcesField() field[Config] {
	return named("resources", "the collections that are served, each under /{name}/{key}", "names to resources", maxResources,
		namedOf[Config, Resource]{
			at: func(c *Config) *[]Resource { return &c.Resources },
			read: func(p *parser, name string, v value, into *Config) {
				if !isResourceName(name) {
					p.failKey(v, "not the name of a resource; expected 1 to 64 of a-z, 0-9, - and _, a letter or digit first")
				}
				r := Resource{Resource: resource.Resource{Name: name, Line: position(v.key).Line}}
				p.tables = p.tables[:0]
				readResource(p, v, into.Origin, &r)
				into.Resources = append(into.Resources, r)
			},
			write:  func(r *Resource) (string, any) { return r.Name, writeObject(resourceFields(), r) },
			names:  schema{"pattern": "^[a-z0-9][a-z0-9_-]{0,63}$"},
			schema: resourceSchema,
		})
}

// isResourceName keeps names that begin with "-", "_" or "." for the gateway's
// own pages, so that none of those can ever clash with a resource.
func isResourceName(s string) bool {
	for i, c := range s {
		letter := c >= 'a' && c <= 'z' || c >= '0' && c <= '9'
		if !letter && (i == 0 || c != '-' && c != '_') {
			return false
		}
	}
	return s != "" && len(s) <= 64
}

func resourceFields() []field[Resource] {
	def := defaultResource(time.Second)
	root := func(r *Resource) *resource.Node { return &r.Root }
	return []field[Resource]{
		written(tableField(root)),
		sqlField(),
		required(keyField()),
		dependsField(),
		columnsField(root),
		bigintField(),
		one("freshness", "overrides the promise of the whole file",
			freshness(), func(r *Resource) *time.Duration { return &r.Freshness }),
		promiseField(),
		withDefault(one("on_stale", "what a GET gets while the promise cannot be kept; verify waits for the stream of changes to catch up, "+
			"at most load.timeout, and answers from the cache if it does, and else by a load",
			oneOf(Reload, Verify, Stale, Unavailable), func(r *Resource) *Policy { return &r.OnStale }), &def),
		accessField(),
		withDefault(cacheControlField(), &def),
		withDefault(one("missing_ttl", "how long the absence of a row is remembered; 0s: not at all",
			durationOrOff(24*time.Hour), func(r *Resource) *time.Duration { return &r.MissingTTL }), &def),
		object("load", "what the resource may ask of the origin", loadFields,
			func(r *Resource) *LoadLimits { return &r.Load }),
		childrenField(root),
	}
}

func loadFields() []field[LoadLimits] {
	def := defaultResource(time.Second)
	return []field[LoadLimits]{
		withDefault(one("batch", "the keys that one statement loads at most",
			count(1, 10_000), func(l *LoadLimits) *int { return &l.Batch }), &def.Load),
		withDefault(one("concurrency", "the statements that run at once",
			count(1, 1024), func(l *LoadLimits) *int { return &l.Concurrency }), &def.Load),
		withDefault(one("timeout", "how long a statement may take before its keys are loaded in halves",
			duration(10*time.Millisecond, 10*time.Minute), func(l *LoadLimits) *time.Duration { return &l.Timeout }), &def.Load),
		withDefault(one("queue", "the keys that may wait for a statement",
			count(1, 1<<24), func(l *LoadLimits) *int { return &l.Queue }), &def.Load),
	}
}

// bigintField is a choice in the file, so that other forms have room, and a
// flag for the origin.
func bigintField() field[Resource] {
	k := oneOf("number", "string")
	word := func(r *Resource) string {
		if r.BigintAsString {
			return "string"
		}
		return "number"
	}
	f := field[Resource]{
		name: "bigint", doc: "how 64-bit integers are written: as JSON numbers, or as strings for readers whose numbers are doubles",
		read: func(p *parser, v value, into *Resource) {
			var choice string
			readScalar(p, v, k, &choice)
			into.BigintAsString = choice == "string"
		},
		write: func(from *Resource) any {
			if from.Query != nil {
				return nil // the statement writes its numbers itself
			}
			return word(from)
		},
		schema: func() schema { return k.schema },
	}
	return withDefault(f, &Resource{})
}

// Schema returns the JSON Schema (draft 2020-12) of the file, for editors.
func Schema() []byte {
	s := objectSchema(configFields())
	s["$schema"] = "https://json-schema.org/draft/2020-12/schema"
	s["title"] = "Slipstream gateway configuration"
	s["$defs"] = schema{"child": objectSchema(childFields())}
	out, err := json.MarshalIndent(s, "", "  ")
	if err != nil {
		// Strings, numbers and maps only; a test reads the result.
		return fmt.Appendf(nil, "{%q: %q}\n", "$comment", err)
	}
	return append(out, '\n')
}
