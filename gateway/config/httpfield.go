package config

import (
	"math"
	"strings"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// This file reads how documents are served over HTTP, and tracing.

// Bounds of lists. More encodings than there are get a message each.
const (
	maxCodings     = 16
	maxProxies     = 1024
	maxHosts       = 256
	maxOrigins     = 256
	maxCORSHeaders = 64
)

func httpFields() []field[HTTP] {
	return []field[HTTP]{
		{Name: "engine", Doc: "what serves connections: an event loop, or Go's own server; left out: loop on Linux, net/http elsewhere",
			Value: scalar(oneOf(Loop, NetHTTP), func(h *HTTP) *Engine { return &h.Engine }), Default: defaultEngine(), Reload: listener},
		{Name: "compression", Doc: "the content encodings that documents are sent in, the preferred first; [] or none: none",
			Value: compression(), Default: []string{encodingZstd, encodingGzip}, Reload: swap},
		{Name: "batch", Doc: "the keys that one request may ask for",
			Value: scalar(count(1, 10_000), func(h *HTTP) *int { return &h.Batch }), Default: 1000, Reload: swap},
		{Name: "openapi", Doc: "serves a description of the resources that the caller may read at /openapi.json",
			Value: scalar(inverted(), func(h *HTTP) *bool { return &h.HideOpenAPI }), Default: false, Reload: swap},
		{Name: "trusted_proxies", Doc: "the addresses and networks whose X-Forwarded-For is believed to name the client, and unix for those who connect over unix sockets; left out: none, the client is who connected",
			Value: proxies(), Reload: listener},
		{Name: "hosts", Doc: `the names that requests may have in Host, besides localhost and IP addresses; "*": every name; left out: no others at loopback addresses unless trusted_proxies cover one, every name elsewhere`,
			Value: list(hostName(), maxHosts, strings.EqualFold, func(h *HTTP) *[]string { return &h.Hosts }), Reload: swap},
		{Name: "cors", Doc: "which web pages of other origins may read answers; left out: none",
			Value: object(corsFields, func(h *HTTP) *CORS { return &h.CORS }), Omit: ifZero, Reload: swap, Check: func(p *parser, v value, h *HTTP) {
				if h.CORS.Credentials && h.CORS.everyOrigin() {
					p.failAt(within(v, "credentials"), `true beside the origin "*" would let every page read with its visitor's rights; `+
						"expected the origins written out, or credentials: false")
				}
			}},
		{Name: "limits", Doc: "what clients may ask of the HTTP frontend",
			Value: object(limitFields, func(h *HTTP) *Limits { return &h.Limits })},
	}
}

// compression takes a list, which may be empty, or "none".
func compression() setting[HTTP] {
	const none = "none"
	codings := list(oneOf(encodingZstd, encodingGzip), maxCodings, same, func(h *HTTP) *[]string { return &h.Compression })
	return setting[HTTP]{
		read: func(p *parser, v value, into *HTTP) {
			into.Compression = []string{}
			if n, isList := v.node.(*ast.SequenceNode); isList {
				if len(n.Values) > 0 {
					codings.read(p, v, into)
				}
				return
			}
			const expected = "a list such as [zstd, gzip], or none"
			if t, ok := p.scalar(v, expected); ok && t.s != none {
				p.failAt(v, "%s; expected %s", t, expected)
			}
		},
		write: func(from *HTTP) any {
			if from.Compression != nil && len(from.Compression) == 0 {
				return none
			}
			return codings.write(from)
		},
		schema: func() schema {
			s := codings.schema()
			s["minItems"] = 0
			return schema{"oneOf": []any{s, schema{"type": "string", "enum": []string{none}}}}
		},
		set: func(into *HTTP, def any) { into.Compression = def.([]string) },
	}
}

// proxies takes addresses and networks, which Go's side has in one field, and the word
// unix, which it has in another.
func proxies() setting[HTTP] {
	trusted := list(proxy(), maxProxies, same, func(all *[]trustee) *[]trustee { return all })
	return setting[HTTP]{
		schema: trusted.schema,
		read: func(p *parser, v value, into *HTTP) {
			var all []trustee
			trusted.read(p, v, &all)
			for _, one := range all {
				if one.unix {
					into.TrustUnix = true
				} else {
					into.TrustedProxies = append(into.TrustedProxies, one.network)
				}
			}
		},
		write: func(from *HTTP) any {
			var all []trustee
			for _, network := range from.TrustedProxies {
				all = append(all, trustee{network: network})
			}
			if from.TrustUnix {
				all = append(all, trustee{unix: true})
			}
			return trusted.write(&all)
		},
	}
}

func corsFields() []field[CORS] {
	return []field[CORS]{
		{Name: "origins", Doc: `the origins whose pages may read: "*" is every page, others are compared whole`,
			Value: list(webOrigin(), maxOrigins, same, func(c *CORS) *[]string { return &c.Origins }), Required: true},
		{Name: "headers", Doc: "the request fields that pages may send besides those that the gateway itself knows",
			Value: list(headerName(), maxCORSHeaders, strings.EqualFold, func(c *CORS) *[]string { return &c.Headers })},
		{Name: "credentials", Doc: `lets pages send cookies and the like; not beside the origin "*"`,
			Value: scalar(truth(), func(c *CORS) *bool { return &c.Credentials }), Omit: ifZero},
		{Name: "max_age", Doc: "how long a browser may remember the answer to a preflight; 0s: not at all",
			Value: scalar(durationOrOff(24*time.Hour), func(c *CORS) *time.Duration { return &c.MaxAge }),
			If:    func(c *CORS) bool { return len(c.Origins) > 0 }, Default: 10 * time.Minute},
	}
}

func limitFields() []field[Limits] {
	// The frontend keeps the timeouts but that of a request to a quarter of a second.
	const least = 250 * time.Millisecond
	return []field[Limits]{
		{Name: "client", Doc: "the rate of one client address, an IPv6 network of 64 bits counting as one; left out: no limit",
			Value: object(rateFields, func(l *Limits) *Rate { return &l.Client }), Omit: ifZero, Reload: swap},
		{Name: "caller", Doc: "the rate of one API key or token subject; left out: no limit",
			Value: object(rateFields, func(l *Limits) *Rate { return &l.Caller }), Omit: ifZero, Reload: swap},
		{Name: "request_timeout", Doc: "how long a request may take, its load included",
			Value: scalar(duration(10*time.Millisecond, 10*time.Minute), func(l *Limits) *time.Duration { return &l.RequestTimeout }), Default: 10 * time.Second, Reload: listener},
		{Name: "header_timeout", Doc: "how long the head of a request may take to arrive",
			Value: scalar(duration(least, 5*time.Minute), func(l *Limits) *time.Duration { return &l.HeaderTimeout }), Default: 5 * time.Second, Reload: listener},
		{Name: "idle_timeout", Doc: "how long a connection may stay open without a request",
			Value: scalar(duration(least, time.Hour), func(l *Limits) *time.Duration { return &l.IdleTimeout }), Default: time.Minute, Reload: listener},
		{Name: "stall_timeout", Doc: "how long one write to a client that does not read may take",
			Value: scalar(duration(least, 10*time.Minute), func(l *Limits) *time.Duration { return &l.StallTimeout }), Default: 30 * time.Second, Reload: listener},
		{Name: "header", Doc: "the largest head of a request",
			Value: scalar(size(4<<10, 1<<20), func(l *Limits) *int64 { return &l.Header }), Default: int64(64 << 10), Reload: listener},
		{Name: "connections", Doc: "the open connections; for one more an idle one is closed",
			Value: scalar(count(1, 1_000_000), func(l *Limits) *int { return &l.Connections }), Default: 17_000, Reload: listener},
		{Name: "connections_per_address", Doc: "the open connections of one client address, an IPv6 network of 64 bits counting as one; not of loopback and trusted proxies; left out: no limit",
			Value: scalar(count(1, 1_000_000), func(l *Limits) *int { return &l.PerAddress }), Omit: ifZero, Reload: listener},
	}
}

func rateFields() []field[Rate] {
	return []field[Rate]{
		{Name: "rate", Doc: "requests a second in the long run",
			Value: scalar(perSecond(), func(r *Rate) *float64 { return &r.PerSecond }), Omit: ifZero, Required: true},
		{Name: "burst", Doc: "requests that may come at once after a pause; left out: the rate rounded up",
			Value: scalar(count(1, maxRate), func(r *Rate) *int { return &r.Burst }), Omit: ifZero, Default: func(r *Rate) any {
				if !(r.PerSecond > 0) { // nor NaN
					return nil
				}
				return int(math.Ceil(min(r.PerSecond, maxRate)))
			}},
	}
}

func tracingFields() []field[Tracing] {
	sent := func(t *Tracing) bool { return t.Endpoint != "" }
	return []field[Tracing]{
		{Name: "endpoint", Doc: "the URL of a collector, such as http://127.0.0.1:4318",
			Value: scalar(collector(), func(t *Tracing) *string { return &t.Endpoint }), Omit: ifZero, Required: true},
		{Name: "sample", Doc: "the part of the requests that is traced, of those whose caller has not decided it; 0: none",
			Value: scalar(fraction(), func(t *Tracing) *float64 { return &t.Sample }), If: sent, Default: 0.01},
		{Name: "service", Doc: "the name of the gateway in traces",
			Value: scalar(label("a name of 1 to 128 bytes", 128), func(t *Tracing) *string { return &t.Service }), If: sent, Default: "slipstream"},
	}
}
