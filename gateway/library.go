package gateway

import (
	"context"
	"fmt"
	"net/http"
	"strings"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/admin"
)

// This file is for programs that embed a gateway in addition to its listeners, or instead
// of them.

// ErrUnknownResource is wrapped by errors about a resource that the configuration does not have.
var ErrUnknownResource = admin.ErrUnknownResource

// Document is what [Gateway.Get] found.
type Document struct {
	// Body is the JSON, or nil if there is no such row. It is shared with the cache and with other
	// callers: it must not be changed. It stays valid, and in memory, for as long as it is held.
	Body []byte
	// Exists reports whether there is such a row.
	Exists bool
	// Source says where the document came from. It is [cache.Stale] if the document may be older
	// than promised, which only the policy [config.Stale] of its resource allows.
	Source cache.Source
	// Tier is the name of the tier that held the document, such as "memory"; "" if it was loaded.
	Tier string
	// Behind is how much older than promised a stale document may be, otherwise 0.
	Behind time.Duration
	// Age is the time since the load of the document began. A document that has not changed
	// satisfies the promise at any age. It is negative if unknown: a disk tier is
	// configured, and the document may have been loaded before the machine was started.
	Age time.Duration

	found *cache.Document
	from  *generation
}

// ETag returns the strong entity tag that the document has over HTTP, in quotes; "" if there is
// no such row. It is computed by the first call for a document, and kept in the cache.
func (d Document) ETag() string {
	if !d.Exists {
		return ""
	}
	return d.from.service.EntityTag(d.found)
}

// Get returns the document of a resource with the key, whose columns are given as text, in the
// order and the form of the path of a URL, but without percent-encoding: Get(ctx, "depts", "42").
//
// It keeps the promise as a GET over HTTP that begins with the call does, and its loads are
// shared with those of all frontends. It applies no access rules and no rate limits, and is neither
// in the log of requests nor in the metrics of a frontend. A document in memory is returned without
// waiting, even if ctx has ended. Otherwise ctx bounds the wait; a load that others may share
// continues. See [cache.WithClient] for fair queueing of loads among callers.
//
// A row that does not exist is not an error: see [Document.Exists]. The error wraps
//
//   - [ErrUnknownResource] if the configuration has no such resource,
//   - a [*resource.KeyError] if the key is not one of the resource,
//   - the error of ctx if it ended first,
//   - [cache.ErrUnavailable] if the database cannot be reached, or has not been reached since
//     Start,
//   - [cache.ErrStale] if the promise cannot be kept and the policy of the resource is
//     [config.Unavailable],
//   - [cache.ErrOverloaded] if too many keys wait for a load,
//   - [cache.ErrTooLarge] if the document is larger than MaxDocument of the configuration,
//   - [cache.ErrClosed] after Shutdown,
//
// or is otherwise that of the database. All methods for embedding are safe for concurrent use,
// before Start as well.
func (g *Gateway) Get(ctx context.Context, name string, key ...string) (Document, error) {
	now, start := g.now(), g.cache.Now()
	id, columns, err := g.find(now, name)
	if err != nil {
		return Document{}, fmt.Errorf("get: %w", err)
	}
	k := cache.Key{Resource: id}
	if k.ID, err = resource.ID(columns, key); err != nil {
		return Document{}, fmt.Errorf("get: resource %s: %w", name, err)
	}
	a, ok := g.cache.Peek(k, start)
	if !ok {
		if a, err = g.cache.Get(ctx, k, start); err != nil {
			return Document{}, fmt.Errorf("get: resource %s, key %s: %w", name, quoted(key), err)
		}
	}
	return g.document(now, a, start), nil
}

// GetMany returns the documents of a resource with the keys, in their order, each as [Gateway.Get]
// does. Documents that are not in memory are loaded in as few statements as possible; two of them may
// show the database at two moments. The first error ends the call; the loads continue.
func (g *Gateway) GetMany(ctx context.Context, name string, keys [][]string) ([]Document, error) {
	now, start := g.now(), g.cache.Now()
	id, columns, err := g.find(now, name)
	if err != nil {
		return nil, fmt.Errorf("get: %w", err)
	}
	if len(keys) == 0 {
		return nil, nil
	}
	all := make([]cache.Key, len(keys))
	for i, key := range keys {
		all[i].Resource = id
		if all[i].ID, err = resource.ID(columns, key); err != nil {
			return nil, fmt.Errorf("get: resource %s, key %d of %d: %w", name, i+1, len(keys), err)
		}
	}
	answers := make([]cache.Answer, len(keys))
	if !g.cache.PeekMany(all, start, answers) {
		if err := g.cache.GetMany(ctx, all, start, answers); err != nil {
			return nil, fmt.Errorf("get: resource %s, %d keys: %w", name, len(keys), err)
		}
	}
	documents := make([]Document, len(keys))
	for i, a := range answers {
		documents[i] = g.document(now, a, start)
	}
	return documents, nil
}

// find looks up a resource.
func (g *Gateway) find(now *generation, name string) (cache.ResourceID, []resource.KeyColumn, error) {
	id, columns, known := now.service.Find(name)
	switch {
	case g.ctx.Err() != nil:
		return 0, nil, cache.ErrClosed
	case !known:
		return 0, nil, fmt.Errorf("%w %q", ErrUnknownResource, name)
	case columns == nil:
		return 0, nil, fmt.Errorf("resource %s: %w", name, errNotReached)
	}
	return id, columns, nil
}

func (g *Gateway) document(now *generation, a cache.Answer, start time.Duration) Document {
	d := Document{Body: a.Doc.Body(), Exists: !a.Doc.Missing(), Source: a.Source, Tier: a.Tier, Behind: a.Behind,
		Age: max(0, start-a.Doc.LoadedAt()), found: a.Doc, from: now}
	if a.Tier != "" && now.config.Tiers.Disk.Set() {
		d.Age = -1
	}
	return d
}

// quoted formats a key for a message.
func quoted(key []string) string {
	text := fmt.Sprintf("%+q", strings.Join(key, "/"))
	if len(text) > 80 {
		text = text[:80] + "..."
	}
	return text
}

// Handler returns the HTTP surface of the gateway for the caller's own server: documents,
// batches and /openapi.json, with the access rules, limits, logs and metrics of the HTTP
// listeners, and with the same reloads. It needs no listener of the gateway. To serve below a
// prefix, wrap it in [http.StripPrefix]; logs, and the paths in /openapi.json, omit the prefix.
// Before Start and after Shutdown it answers 503. Shutdown waits for its requests; shut the
// server down first.
//
// The server must bound its connections itself, above all with timeouts: http.limits only bounds
// the duration and the rate of requests here, not the connections. http.hosts is compared with
// the Host of the request, so a server on a loopback address behind a proxy needs its names
// there.
func (g *Gateway) Handler() http.Handler {
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) { g.mounted.Load().ServeHTTP(w, r) })
}

// Collector returns the metrics of the gateway for the caller's own registry: those of /metrics
// except those of the process and of the Go runtime. A gateway uses no global registry. Before
// Start and after Shutdown there are none. All possible metrics are described from the start, so a
// pedantic registry accepts them, too. A registry can hold one gateway; for several, see
// [prometheus.WrapRegistererWith].
func (g *Gateway) Collector() prometheus.Collector { return embedded{collector{g}} }

// embedded are the metrics of a gateway in the registry of another program.
type embedded struct{ collector }

// Collect implements [prometheus.Collector].
func (e embedded) Collect(out chan<- prometheus.Metric) {
	if g := e.gateway; g.mounted.Load() != nil && g.ctx.Err() == nil {
		e.collector.Collect(out)
	}
}
