package gateway

import (
	"net"

	"github.com/slipstream-go/slipstream/gateway/config"
	front "github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/httpfront"
)

// protocolHTTP is HTTP/JSON.
var protocolHTTP = protocol{
	name:      ListenHTTP,
	http:      true,
	always:    true, // for Gateway.Handler
	listeners: func(cfg *config.Config) *config.Listeners { return &cfg.Frontends.HTTP },
	oneSocket: func(cfg *config.Config) bool { return cfg.HTTP.Engine != config.Loop },
	limits:    func(cfg *config.Config) config.Limits { return cfg.HTTP.Limits },
	expose:    (*Exposure).exposeHTTP,
	open:      openHTTP,
}

// httpFrontend is the frontend for HTTP.
type httpFrontend struct {
	*httpfront.Server
	gateway *Gateway
}

func openHTTP(g *Gateway, first *generation, resources []front.Resource, conns front.ConnConfig, requests front.RequestConfig) (frontend, error) {
	var err error
	if first.service, err = httpfront.NewService(g.cache, resources, g.serviceConfig(first, requests)); err != nil {
		return nil, err
	}
	cfg := first.config
	engine := httpfront.EngineLoop
	if cfg.HTTP.Engine == config.NetHTTP {
		engine = httpfront.EngineNetHTTP
	}
	g.http, err = httpfront.New(first.service, httpfront.Config{
		ConnConfig:    conns,
		HeaderTimeout: cfg.HTTP.Limits.HeaderTimeout,
		MaxHeader:     int(cfg.HTTP.Limits.Header),
		TrustUnix:     cfg.HTTP.TrustUnix,
		Engine:        engine,
		DrainGrace:    cfg.Drain.Grace,
	})
	if err != nil {
		return nil, err
	}
	return httpFrontend{g.http, g}, nil
}

// prepare implements frontend.
func (h httpFrontend) prepare(next *generation, resources []front.Resource, requests front.RequestConfig) (func(), error) {
	var err error
	if next.service, err = h.Next(resources, h.gateway.serviceConfig(next, requests)); err != nil {
		return nil, err
	}
	return func() { h.Swap(next.service) }, nil
}

// serviceConfig returns how a generation serves documents over HTTP.
func (g *Gateway) serviceConfig(n *generation, requests front.RequestConfig) httpfront.ServiceConfig {
	cfg := n.config
	c := httpfront.ServiceConfig{
		RequestConfig: requests,
		Compression:   cfg.HTTP.Compression,
		MaxBatch:      cfg.HTTP.Batch,
		CORS: httpfront.CORS{
			Origins: cfg.HTTP.CORS.Origins, Headers: cfg.HTTP.CORS.Headers,
			Credentials: cfg.HTTP.CORS.Credentials, MaxAge: cfg.HTTP.CORS.MaxAge,
		},
		Hosts: httpfront.Hosts{Names: cfg.HTTP.Hosts, Loopback: cfg.HTTP.ChecksHost(true), Elsewhere: cfg.HTTP.ChecksHost(false)},
		Log:   g.log,
	}
	if !cfg.HTTP.HideOpenAPI {
		c.OpenAPI = (&description{config: cfg, ids: n.ids, origin: g.origin}).text
	}
	if n.surface.spans != nil { // a nil *Exporter in the interface would not be nil
		c.Spans = n.surface.spans
	}
	return c
}

// resourceFields are the fields that the configuration sets for the documents of a resource:
// answers, CORS and the OpenAPI description follow from it. A field with an empty value is not sent.
var resourceFields = []struct {
	name, says string
	value      func(*config.Resource) string
}{
	{"Cache-Control", "How caches may store the answer (RFC 9111).", func(r *config.Resource) string { return r.CacheControl }},
}

func fieldsOf(r *config.Resource) (all []front.Field) {
	for _, f := range resourceFields {
		if value := f.value(r); value != "" {
			all = append(all, front.Field{Name: f.name, Value: value})
		}
	}
	return all
}

// HTTPAddr returns the address of the HTTP frontend, or nil if it has no listener. Call it after
// Start.
func (g *Gateway) HTTPAddr() net.Addr { return g.addr(ListenHTTP) }

// Metrics that only HTTP has.
var (
	connections = newMetric("http_connections", "Open connections of the HTTP frontend.")
	answers     = newMetric("http_answers_total", "Answers of the HTTP frontend.", "status")
	durations   = newMetric("http_request_duration_seconds", "Time from the end of reading a request to its answer, by the source of the answer. Buckets are accurate to 3.2 %.", "source")
	bodyBytes   = newMetric("http_body_bytes_total", "Bytes of response bodies of the HTTP frontend.")
	handedOver  = newMetric("http_handed_over_total", "Requests that the event loop handed over to net/http with their connection, by reason.", "reason")
)

// collect implements frontend.
func (h httpFrontend) collect(f *front.Figures, to sink) {
	to.send(connections, float64(f.Engine.Connections))
	for _, s := range f.Statuses {
		to.send(answers, float64(s.N), s.Name)
	}
	for _, reason := range f.HandedOver {
		to.send(handedOver, float64(reason.N), reason.Name)
	}
	to.send(bodyBytes, float64(f.Answers.Bytes()))
	collectDurations(durations, f.Answers, to)
}
