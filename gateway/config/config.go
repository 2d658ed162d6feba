// Package config reads the gateway's configuration file.
//
// The file is YAML, read strictly: whatever the gateway would not obey is an
// error with its line, so that a misspelt "freshness" never turns into a
// silent default. The tables of fields, from schema.go on, are the parser, the
// writer, the defaults, the JSON Schema and what a reload costs at once.
//
// parse.go, tree.go and value.go read, write.go writes, kinds.go and field.go are what the tables are
// made of; difference.go says what a reload changes.
package config

import (
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Config is the configuration of a gateway. The zero value of every field but
// Origin and Resources means its default; see [Config.WithDefaults].
type Config struct {
	// Origin is the database that the documents are loaded from. Required.
	Origin Origin
	// Freshness is the promise of every resource that names none of its
	// own: a GET that begins more than this after a commit was acknowledged
	// never returns the older version. Default 1 s.
	Freshness time.Duration
	// Resources are the collections that are served, in file order; the
	// place in this slice is the cache's ResourceID. At least one.
	Resources []Resource
	// MaxDocument is the largest document that is served, in bytes of JSON.
	// Default 8 MiB.
	MaxDocument int64

	Tiers     Tiers
	Frontends Frontends
	HTTP      HTTP
	Redis     Redis
	Auth      Auth
	Tracing   Tracing
	Admin     Admin
	Drain     Drain
	// Handover is the unix socket at which a running gateway gives its listening
	// sockets to the one that replaces it, relative to the folder of the
	// configuration file; see [Config.HandoverPath]. Default: none.
	Handover string
	Log      Log

	// Warnings are what the operator should know of the file itself, in sentences. [Load] sets
	// them; they are no part of the configuration.
	Warnings []string
}

// Origin says where the documents come from.
type Origin struct {
	// URL is "sqlite:path" (relative to Dir), "sqlite:///absolute/path" or
	// "postgres://user@host/database", with several hosts and parameters as
	// PostgreSQL's own programs take them. It may hold a password: print it
	// only through [Config.Redacted].
	URL string
	// StreamURL is where the stream of changes connects: directly to the
	// server, when URL leads through a pooler. Default: URL. This and all
	// below is only for PostgreSQL.
	StreamURL string
	// Notify makes the triggers send NOTIFY and the stream listen: a change
	// is heard of at once instead of after Poll. Commits that notify wait for
	// one another.
	Notify bool
	// Poll is how often the stream asks for changes. Default 25 ms.
	Poll time.Duration
	// Connections is how many loads may run at once. Default: the sum of
	// Load.Concurrency of all resources, at most 16. The stream has a
	// connection of its own on top.
	Connections int
	// KeepChanges is how long rows of the change table are kept. Default 24 h.
	KeepChanges time.Duration
	// KeepBytes is how much rows of the change table may take, with their index
	// entries, before the oldest are deleted however young they are. Default 1 GiB.
	KeepBytes int64
	// Dir is the folder of the configuration file. [Load] sets it; empty
	// means the working directory.
	Dir string
}

// Resource is a collection of documents and how it is served.
type Resource struct {
	resource.Resource

	// OnStale says what a GET gets while the freshness promise of the
	// resource cannot be kept. Default [Reload].
	OnStale Policy
	// CacheControl is the Cache-Control header of its documents. The
	// default, "no-cache", makes downstream caches ask each time: one that
	// does not would break the promise without our knowing. A max-age above
	// zero is taken as the operator's choice and weakens the promise by that
	// much: who reads through such a cache may get a document that is older
	// than Freshness by max-age. stale-while-revalidate and stale-if-error
	// have no such bound and are refused unless the resource has no promise.
	// With Access the default is "private, no-cache", and what would let
	// shared caches answer is refused.
	CacheControl string
	// Access says who may read the resource. Default: everybody.
	Access *Access
	// MissingTTL is how long the absence of a row is remembered. Negative:
	// not at all. Default 60 s.
	MissingTTL time.Duration
	// Load bounds what the resource may ask of the origin.
	Load LoadLimits
}

// Policy is what a resource does while its freshness promise cannot be kept.
type Policy string

// Policies of a resource.
const (
	Reload      Policy = "reload"      // each GET loads from the origin
	Verify      Policy = "verify"      // wait for the stream to catch up, at most Load.Timeout, then as Reload
	Stale       Policy = "stale"       // serve what is cached, marked as stale
	Unavailable Policy = "unavailable" // answer 503
)

// LoadLimits bounds the loads of one resource.
type LoadLimits struct {
	// Batch is the number of keys that one statement loads at most. Default 256.
	Batch int
	// Concurrency is the number of statements that run at once. Default 4.
	Concurrency int
	// Timeout is how long a statement may take before its keys are loaded
	// in halves. Default 5 s.
	Timeout time.Duration
	// Queue is the number of keys that may wait for a statement; a GET
	// above it is refused at once. Default 65,536.
	Queue int
}

// Tiers are the stores in front of the origin.
type Tiers struct {
	// Memory is the budget of the memory tier in bytes. Default 256 MiB.
	Memory int64
	// Disk keeps documents over restarts. Default: there is none.
	Disk Disk
}

// Frontends are the addresses that documents are served on.
type Frontends struct {
	// HTTP is where HTTP/JSON is served. Default 127.0.0.1:8080.
	HTTP Listeners
	// Redis is where the Redis protocol is served. Default: nowhere.
	Redis Listeners
}

// Log says what is logged, to standard error but for Requests.
type Log struct {
	// Level is debug, info, warn or error. Default info.
	Level string
	// Format is text or json. Default text.
	Format string
	// Slow is the time above which a request is logged, at most a few a
	// second. Default 1 s; negative: none is.
	Slow time.Duration
	// Requests is the file that gets a line of JSON for every request, relative
	// to the folder of the configuration file; "-" is standard output. Default:
	// none. See [Config.RequestLogPath].
	Requests string
	// Audit is the file that gets a line of JSON for what operators do and for logins that fail,
	// relative to the folder of the configuration file; see [Config.AuditPath]. Default: such
	// lines are in the log.
	Audit string
	// RequestSample is the part of the requests that gets a line, from 0 to 1;
	// those that failed and those slower than Slow always do. Default 1;
	// negative: none but those.
	RequestSample float64
}

// Default returns the configuration that an empty file would mean, were its
// required fields optional.
func Default() Config { return Config{}.WithDefaults() }

// Cache-Control of resources that everybody may read, and of those with Access.
const (
	cacheOfAll = "no-cache"
	cacheOfFew = "private, no-cache"
)

// WithDefaults returns a copy in which every zero field has its default.
// [Parse] has applied it already; a Config made in Go needs it once.
func (c Config) WithDefaults() Config {
	fill(configFields(), &c)
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

// maxDefaultConnections is more statements at once than most servers have cores;
// more would only wait for one another there.
const maxDefaultConnections = 16

// loadsAtOnce is how many statements the resources may send together.
func (c *Config) loadsAtOnce() int {
	sum := 0
	for i := range c.Resources {
		sum += c.Resources[i].Load.Concurrency
	}
	return min(sum, maxDefaultConnections)
}

// MinFreshness returns the tightest promise of the resources that have one, and
// [Config.Freshness] if none has.
func (c *Config) MinFreshness() time.Duration {
	least := time.Duration(0)
	for i := range c.Resources {
		if r := &c.Resources[i]; !r.NoPromise && (least == 0 || r.Freshness < least) {
			least = r.Freshness
		}
	}
	if least == 0 {
		return c.Freshness
	}
	return least
}

// Declarations returns what origins and frontends need of the resources, in
// the order of Resources.
func (c *Config) Declarations() []resource.Resource {
	all := make([]resource.Resource, len(c.Resources))
	for i := range c.Resources {
		all[i] = c.Resources[i].Resource
	}
	return all
}
