package config

import (
	"encoding/json"
	"fmt"
	"regexp"
	"slices"
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

// configFields is the whole file.
func configFields() []field[Config] {
	return []field[Config]{
		originField(),
		{Name: "freshness", Doc: "the promise: a GET that begins more than this after a commit never returns the older version",
			Value: scalar(freshness(), func(c *Config) *time.Duration { return &c.Freshness }), Default: time.Second, Reload: swap},
		{Name: "resources", Doc: "the collections that are served, each under /{name}/{key}", Value: resources(), Required: true},
		{Name: "max_document", Doc: "the largest document that is served",
			Value: scalar(size(1<<10, 1<<30), func(c *Config) *int64 { return &c.MaxDocument }), Default: int64(8 << 20), Reload: process},
		{Name: "tiers", Doc: "the stores in front of the origin",
			Value: object(tierFields, func(c *Config) *Tiers { return &c.Tiers }), Reload: process},
		{Name: "frontends", Doc: "the addresses that documents are served on",
			Value: object(frontendFields, func(c *Config) *Frontends { return &c.Frontends }), Reload: listener},
		{Name: "http", Doc: "how documents are served over HTTP",
			Value: object(httpFields, func(c *Config) *HTTP { return &c.HTTP })},
		{Name: "redis", Doc: "how documents are served over the Redis protocol, beside frontends.redis; left out: with the defaults",
			Value: object(redisFields, func(c *Config) *Redis { return &c.Redis }), Omit: ifZero,
			If: func(c *Config) bool { return len(c.Frontends.Redis) > 0 }},
		{Name: "auth", Doc: "how callers are identified; if left out, they are not",
			Value: object(authFields, func(c *Config) *Auth { return &c.Auth }), Omit: ifZero, Reload: swap},
		{Name: "tracing", Doc: "where spans of requests are sent, as OpenTelemetry over HTTP; left out: nowhere",
			Value: object(tracingFields, func(c *Config) *Tracing { return &c.Tracing }), Omit: ifZero, Reload: swap},
		{Name: "admin", Doc: "the listener of operators: host:port, unix:path, or a mapping", Value: adminSetting(), Default: adminAddress},
		{Name: "drain", Doc: "how the gateway ends", Value: object(drainFields, func(c *Config) *Drain { return &c.Drain })},
		{Name: "handover", Doc: "the unix socket at which a running gateway gives its listening sockets to the one that replaces it (Linux), " +
			"best in a folder of the gateway's user or of root to which nobody else can write, otherwise in a private one that it makes there; left out: none",
			Value: scalar(fileName("a file, relative to this one, such as run/handover.sock"), func(c *Config) *string { return &c.Handover }),
			Omit:  ifZero, Reload: process},
		{Name: "log", Doc: "what is logged, to standard error but for requests",
			Value: object(logFields, func(c *Config) *Log { return &c.Log })},
	}
}

// freshness has a floor of twice the 100 ms after which the stream of changes is
// asked again: below it the promise could not be kept for long.
func freshness() kind[time.Duration] { return duration(200*time.Millisecond, time.Hour) }

func frontendFields() []field[Frontends] {
	const expected = "host:port or unix:path, a mapping with an address, or a list of these"
	return []field[Frontends]{
		{Name: "http", Doc: "where HTTP/JSON is served: " + expected, Default: ListenAt("127.0.0.1:8080"),
			Value: listeners(expected, "127.0.0.1:8080 or :8080", func(f *Frontends) *Listeners { return &f.HTTP })},
		{Name: "redis", Doc: "where the Redis protocol is served: " + expected + "; left out: nowhere",
			Value: listeners(expected, "127.0.0.1:6379", func(f *Frontends) *Listeners { return &f.Redis })},
	}
}

func resources() setting[Config] {
	s := named("names to resources", maxResources, namedOf[Config, Resource]{
		at: func(c *Config) *[]Resource { return &c.Resources },
		read: func(p *parser, name string, v value, into *Config) {
			if !resourceName.MatchString(name) {
				p.failKey(v, "not the name of a resource; expected 1 to 64 of a-z, 0-9, - and _, a letter or digit first")
			}
			r := Resource{Resource: resource.Resource{Name: name, Line: position(v.key).Line}}
			p.tables = p.tables[:0]
			readResource(p, v, into.Origin, &r)
			into.Resources = append(into.Resources, r)
		},
		write:  func(r *Resource) (string, any) { return r.Name, writeObject(resourceFields(), r) },
		names:  schema{"pattern": resourceName.String()},
		schema: resourceSchema,
	})
	s.fill = func(c *Config) {
		c.Resources = slices.Clone(c.Resources)
		for i := range c.Resources {
			fill(resourceFields(), &c.Resources[i])
		}
	}
	s.rules, s.named = func() []rule { return rules(resourceFields()) }, true
	return s
}

// resourceName keeps names that begin with "-", "_" or "." for the gateway's
// own pages, so that none of those can ever clash with a resource.
var resourceName = regexp.MustCompile("^[a-z0-9][a-z0-9_-]{0,63}$")

func resourceFields() []field[Resource] {
	root := func(r *Resource) *resource.Node { return &r.Root }
	table, bigint := tableField(root), scalar(flag("number", "string"), func(r *Resource) *bool { return &r.BigintAsString })
	table.Omit = ifZero
	table.Required = false
	written := bigint.write
	bigint.write = func(from *Resource) any {
		if from.Query != nil {
			return nil // the statement writes its numbers itself
		}
		return written(from)
	}
	return []field[Resource]{
		table,
		{Name: "sql", Doc: "in place of a table: a statement that selects the key columns and then the document, as json or jsonb, of all keys in the arrays $1, $2, ...",
			Value: sqlSetting(), Reload: flush},
		{Name: "key", Doc: "the columns that make the key, in the order of the path, such as [deptno]; with sql also their types, such as { deptno: integer }",
			Value: keySetting(), Required: true, Reload: flush},
		{Name: "depends", Doc: "with sql: the tables whose changes change documents, and which documents", Value: depends(), Reload: flush},
		columnsField(root),
		{Name: "bigint", Doc: "how 64-bit integers are written: as JSON numbers, or as strings for readers whose numbers are doubles",
			Value: bigint, Default: false, Reload: flush},
		{Name: "freshness", Doc: "overrides the promise of the whole file",
			Value: scalar(freshness(), func(r *Resource) *time.Duration { return &r.Freshness }), Reload: swap},
		{Name: "promise", Doc: "none: changes are not followed; a document is kept for the time of freshness after it was loaded, and no longer",
			Value: scalar(flag("kept", "none"), func(r *Resource) *bool { return &r.NoPromise }), Default: false, Reload: flush},
		{Name: "on_stale", Doc: "what a GET gets while the promise cannot be kept; verify waits for the stream of changes to catch up, " +
			"at most load.timeout, and answers from the cache if it does, and else by a load",
			Value: scalar(oneOf(Reload, Verify, Stale, Unavailable), func(r *Resource) *Policy { return &r.OnStale }), Default: Reload, Reload: swap},
		{Name: "access", Doc: "who may read the resource: the holders of keys, the bearers of tokens that jwt or claims let in, and clients by the names in their certificates; left out: everybody",
			Value: accessSetting(), Reload: swap, Check: func(p *parser, v value, r *Resource) {
				if r.Access.nobody() {
					p.failAt(v, "no caller could read the resource; expected keys, jwt: true, claims or certificates, or no access for everybody")
				}
			}},
		{Name: "cache_control", Doc: "the Cache-Control header of the documents; max-age above 0 weakens the promise by that much; " +
			"stale-while-revalidate and stale-if-error only with promise: none; with access not public and s-maxage, and left out it is private, no-cache",
			Value: scalar(headerValue("a Cache-Control header, such as no-cache"), func(r *Resource) *string { return &r.CacheControl }),
			Default: func(r *Resource) any {
				if r.Access != nil {
					return cacheOfFew
				}
				return cacheOfAll
			}, Reload: swap, Check: (*parser).cacheControl}, // after promise and access, which it depends on
		{Name: "missing_ttl", Doc: "how long the absence of a row is remembered; 0s: not at all",
			Value: scalar(durationOrOff(24*time.Hour), func(r *Resource) *time.Duration { return &r.MissingTTL }), Default: time.Minute, Reload: swap},
		{Name: "load", Doc: "what the resource may ask of the origin",
			Value: object(loadFields, func(r *Resource) *LoadLimits { return &r.Load }), Reload: swap},
		childrenField(root),
	}
}

func loadFields() []field[LoadLimits] {
	return []field[LoadLimits]{
		{Name: "batch", Doc: "the keys that one statement loads at most",
			Value: scalar(count(1, 10_000), func(l *LoadLimits) *int { return &l.Batch }), Default: 256},
		{Name: "concurrency", Doc: "the statements that run at once",
			Value: scalar(count(1, 1024), func(l *LoadLimits) *int { return &l.Concurrency }), Default: 4},
		{Name: "timeout", Doc: "how long a statement may take before its keys are loaded in halves",
			Value: scalar(duration(10*time.Millisecond, 10*time.Minute), func(l *LoadLimits) *time.Duration { return &l.Timeout }), Default: 5 * time.Second},
		{Name: "queue", Doc: "the keys that may wait for a statement",
			Value: scalar(count(1, 1<<24), func(l *LoadLimits) *int { return &l.Queue }), Default: 1 << 16},
	}
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
