package gateway

import (
	"fmt"
	"net"
	"strings"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/resource"
	front "github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/thriftfront"
	"github.com/slipstream-go/slipstream/internal/gateway/thriftdoc"
)

// protocolThrift is Thrift.
var protocolThrift = protocol{
	name:      ListenThrift,
	listeners: func(cfg *config.Config) *config.Listeners { return &cfg.Frontends.Thrift },
	tls:       func(cfg *config.Config) config.TLS { return cfg.Thrift.TLS },
	limits: func(cfg *config.Config) config.Limits {
		l := &cfg.Thrift.Limits
		return config.Limits{
			Client: l.Client, Caller: l.Caller, RequestTimeout: l.RequestTimeout, IdleTimeout: l.IdleTimeout,
			StallTimeout: l.StallTimeout, Connections: l.Connections, PerAddress: l.PerAddress,
		}
	},
	expose: (*Exposure).exposeThrift,
	open:   openThrift,
}

// thriftFrontend is the frontend for Thrift clients.
type thriftFrontend struct{ *thriftfront.Server }

func openThrift(g *Gateway, first *generation, resources []front.Resource, conns front.ConnConfig, requests front.RequestConfig) (frontend, error) {
	s, err := thriftfront.New(g.cache, thriftResources(first, resources), thriftfront.Config{ConnConfig: conns, RequestConfig: requests, Shape: g.origin.shape})
	if err != nil {
		return nil, err
	}
	return thriftFrontend{s}, nil
}

// prepare implements frontend.
func (t thriftFrontend) prepare(next *generation, resources []front.Resource, requests front.RequestConfig) (func(), error) {
	view, err := t.Next(thriftResources(next, resources), thriftfront.Config{RequestConfig: requests})
	if err != nil {
		return nil, err
	}
	return func() { t.Swap(view) }, nil
}

// thriftResources adds the numbers of fields.
func thriftResources(n *generation, resources []front.Resource) []thriftfront.Resource {
	all := make([]thriftfront.Resource, len(resources))
	for i, r := range resources {
		c := &n.config.Resources[i]
		all[i] = thriftfront.Resource{Resource: r, JSON: c.Query != nil, Fields: c.Thrift}
	}
	return all
}

// shape returns the shape of the documents of a resource, or nil until the database was reached.
func (l *lateOrigin) shape(id cache.ResourceID) *resource.Shape {
	if c := l.reached.Load(); c != nil {
		return c.database.Shape(int(id))
	}
	return nil
}

// ThriftAddr returns the address of the Thrift frontend, or nil if there is none. Call it after
// Start.
func (g *Gateway) ThriftAddr() net.Addr { return g.addr(ListenThrift) }

// ThriftIDL returns the IDL of what a gateway with this configuration serves to Thrift clients, with the
// columns from db, which must have been opened for the same configuration. The warnings say in sentences which
// members of documents are not served. The error is a [config.Errors] if the configuration is wrong.
func ThriftIDL(cfg *config.Config, db Database) (idl []byte, warnings []string, err error) {
	full := cfg.WithDefaults()
	if err := full.Validate(); err != nil {
		return nil, nil, err
	}
	var all []thriftdoc.Resource
	for i := range full.Resources {
		r := &full.Resources[i]
		columns := db.KeyColumns(i)
		if len(columns) == 0 {
			return nil, nil, fmt.Errorf("idl: resource %s: %w", r.Name, errNoKey)
		}
		one := thriftdoc.Resource{Name: r.Name, Key: thriftfront.KeyForm(columns)}
		if r.Query == nil {
			shape := db.Shape(i)
			if shape == nil {
				return nil, nil, fmt.Errorf("idl: resource %s: the columns of its table are not known", r.Name)
			}
			one.Layout = thriftdoc.New(shape, &r.Thrift)
			warnings = append(warnings, fieldWarnings(r, one.Layout)...)
			if len(r.Thrift.Fields) == 0 {
				continue
			}
		}
		all = append(all, one)
	}
	return thriftdoc.IDL(all), warnings, nil
}

// fieldWarnings says which members of documents are not served to Thrift clients, and which numbers mean nothing.
func fieldWarnings(r *config.Resource, l *thriftdoc.Layout) (all []string) {
	const remedy = "; slipstream idl --assign writes numbers"
	switch {
	case len(r.Thrift.Fields) == 0:
		all = append(all, fmt.Sprintf("resource %s is not served to Thrift clients, because its fields have no numbers (resources.%s.thrift.fields)%s", r.Name, r.Name, remedy))
	case len(l.Missing) > 0:
		all = append(all, fmt.Sprintf("resource %s: these members have no number in thrift.fields, and are not served to Thrift clients: %s%s", r.Name, listed(l.Missing), remedy))
	}
	if len(l.Gone) > 0 {
		all = append(all, fmt.Sprintf("resource %s: thrift.fields has numbers of members that documents do not have: %s; if they are gone for good, slipstream idl --assign reserves their numbers",
			r.Name, listed(l.Gone)))
	}
	return all
}

// ThriftWarnings says in sentences which members of documents are not served to Thrift clients by a gateway with
// this configuration. It returns none if there is no Thrift frontend.
func ThriftWarnings(cfg *config.Config, db Database) []string {
	if len(cfg.Frontends.Thrift) == 0 {
		return nil
	}
	_, warnings, err := ThriftIDL(cfg, db)
	if err != nil {
		return []string{err.Error()}
	}
	return warnings
}

// AssignFieldIDs returns the numbers of fields by resource: those of the configuration, and the next free
// ones for members without a number. Numbers of members that documents do not have become reserved.
func AssignFieldIDs(cfg *config.Config, db Database) (map[string]resource.FieldIDs, error) {
	full := cfg.WithDefaults()
	all := make(map[string]resource.FieldIDs)
	for i := range full.Resources {
		r := &full.Resources[i]
		shape := db.Shape(i)
		if r.Query != nil || shape == nil {
			continue
		}
		ids, err := thriftdoc.Assign(shape, &r.Thrift)
		if err != nil {
			return nil, fmt.Errorf("resource %s: %w", r.Name, err)
		}
		all[r.Name] = ids
	}
	return all, nil
}

func (e *Exposure) exposeThrift(cfg *config.Config, _ config.Listener) {
	e.Callers = callersOf(cfg, nil)
	for i := range cfg.Resources {
		if r := &cfg.Resources[i]; r.Access == nil && (r.Query != nil || len(r.Thrift.Fields) > 0) {
			e.Open = append(e.Open, r.Name)
		}
	}
}

// Metrics that only Thrift has.
var (
	thriftCalls      = newMetric("thrift_calls_total", "Calls that the Thrift frontend answered, by group: get, list, or refused for methods that do not exist.", "group")
	thriftExceptions = newMetric("thrift_exceptions_total", "Calls that the Thrift frontend answered with a declared exception.", "exception")
	thriftDurations  = newMetric("thrift_call_duration_seconds", "Time from the end of reading a call to its answer, by the source of the answer; a hit counts with the time of all calls of the same read. Buckets are accurate to 3.2 %.", "source")
	thriftBytes      = newMetric("thrift_body_bytes_total", "Bytes of documents in answers of the Thrift frontend.")
	thriftStale      = newMetric("thrift_stale_answers_total", "Answers of the Thrift frontend with a document that may be older than promised, which the policy of its resource allows.")
	thriftWaiting    = newMetric("thrift_waiting_documents", "Documents that calls of the Thrift frontend wait for.")
	thriftHeld       = newMetric("thrift_held_bytes", "Bytes of loaded documents that wait for their place in an answer of the Thrift frontend.")
	thriftMalformed  = newMetric("thrift_malformed_total", "Connections of the Thrift frontend that were closed because a message was not a call.")
)

// collect implements frontend.
func (t thriftFrontend) collect(f *front.Figures, to sink) {
	t.EachGroup(func(group string, n int64) {
		to.send(thriftCalls, float64(n), group)
	})
	t.EachException(func(name string, n int64) {
		to.send(thriftExceptions, float64(n), strings.ToLower(name))
	})
	collectDurations(thriftDurations, f.Answers, to)
	to.send(thriftBytes, float64(f.Answers.Bytes()))
	to.send(thriftStale, float64(t.StaleAnswers()))
	to.send(thriftWaiting, float64(t.Waiting()))
	to.send(thriftHeld, float64(t.Held()))
	to.send(thriftMalformed, float64(t.Malformed()))
}
