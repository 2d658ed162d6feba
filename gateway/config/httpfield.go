package config

import (
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
	def := Default().HTTP
	return []field[HTTP]{
		one("engine", "what serves connections: an event loop, or Go's own server; left out: loop on Linux, net/http elsewhere",
			oneOf(Loop, NetHTTP), func(h *HTTP) *Engine { return &h.Engine }),
		withDefault(compressionField(), &def),
		withDefault(one("batch", "the keys that one request may ask for",
			count(1, 10_000), func(h *HTTP) *int { return &h.Batch }), &def),
		withDefault(openAPIField(), &def),
		proxiesField(),
		list("hosts", `the names that requests may have in Host, besides localhost and IP addresses; "*": every name; left out: no others at loopback addresses unless trusted_proxies cover one, every name elsewhere`,
			hostName(), maxHosts, strings.EqualFold, func(h *HTTP) *[]string { return &h.Hosts }),
		corsField(),
		object("limits", "what clients may ask of the HTTP frontend", limitFields,
			func(h *HTTP) *Limits { return &h.Limits }),
	}
}

// compressionField takes a list, which may be empty, or "none".
func compressionField() field[HTTP] {
	const none = "none"
	coding := oneOf(encodingZstd, encodingGzip)
	codings := list("compression", "the content encodings that documents are sent in, the preferred first; [] or none: none",
		coding, maxCodings, func(a, b string) bool { return a == b }, func(h *HTTP) *[]string { return &h.Compression })
	f := codings
	f.read = func(p *parser, v value, into *HTTP) {
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
	}
	f.write = func(from *HTTP) any {
		switch {
		case from.Compression == nil:
			return nil
		case len(from.Compression) == 0:
			return none
		}
		return codings.write(from)
	}
	f.schema = func() schema {
		s := codings.schema()
		s["minItems"] = 0
		return schema{"oneOf": []any{s, schema{"type": "string", "enum": []string{none}}}}
	}
	return f
}

// proxiesField takes addresses and networks, which Go's side has in one field, and the word
// unix, which it has in another.
func proxiesField() field[HTTP] {
	trusted := list("trusted_proxies", "the addresses and networks whose X-Forwarded-For is believed to name the client, and unix for those who connect over unix sockets; left out: none, the client is who connected",
		proxy(), maxProxies, func(a, b trustee) bool { return a == b }, func(all *[]trustee) *[]trustee { return all })
	return field[HTTP]{
		name: trusted.name, doc: trusted.doc, schema: trusted.schema,
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

// openAPIField is true in the file for what is false in Go, so that both have
// the default that says nothing.
func openAPIField() field[HTTP] {
	k := truth()
	return field[HTTP]{
		name: "openapi", doc: "serves a description of the resources that the caller may read at /openapi.json",
		read: func(p *parser, v value, into *HTTP) {
			shown := true
			readScalar(p, v, k, &shown)
			into.HideOpenAPI = !shown
		},
		write:  func(from *HTTP) any { return !from.HideOpenAPI },
		schema: func() schema { return k.schema },
	}
}

func corsField() field[HTTP] {
	f := sparse(object("cors", "which web pages of other origins may read answers; left out: none", corsFields,
		func(h *HTTP) *CORS { return &h.CORS }))
	read := f.read
	f.read = func(p *parser, v value, into *HTTP) {
		read(p, v, into)
		if into.CORS.Credentials && into.CORS.everyOrigin() {
			p.failAt(within(v, "credentials"), `true beside the origin "*" would let every page read with its visitor's rights; `+
				"expected the origins written out, or credentials: false")
		}
	}
	return f
}

func corsFields() []field[CORS] {
	exact := func(a, b string) bool { return a == b }
	return []field[CORS]{
		required(list("origins", `the origins whose pages may read: "*" is every page, others are compared whole`,
			webOrigin(), maxOrigins, exact, func(c *CORS) *[]string { return &c.Origins })),
		list("headers", "the request fields that pages may send besides those that the gateway itself knows",
			fieldName(), maxCORSHeaders, strings.EqualFold, func(c *CORS) *[]string { return &c.Headers }),
		written(one("credentials", `lets pages send cookies and the like; not beside the origin "*"`,
			truth(), func(c *CORS) *bool { return &c.Credentials })),
		withoutZero(one("max_age", "how long a browser may remember the answer to a preflight; 0s: not at all; left out: 10m",
			durationOrOff(24*time.Hour), func(c *CORS) *time.Duration { return &c.MaxAge }), func(c *CORS) bool { return c.MaxAge == 0 }),
	}
}

// withoutZero leaves a field out of what is written while zero says so: for kinds
// whose written 0 means something else than Go's zero value.
func withoutZero[T any](f field[T], zero func(*T) bool) field[T] {
	write := f.write
	f.write = func(from *T) any {
		if zero(from) {
			return nil
		}
		return write(from)
	}
	return f
}

func limitFields() []field[Limits] {
	def := Default().HTTP.Limits
	timeout := func(name, doc string, lo, hi time.Duration, at func(*Limits) *time.Duration) field[Limits] {
		return withDefault(one(name, doc, duration(lo, hi), at), &def)
	}
	return []field[Limits]{
		sparse(object("client", "the rate of one client address, an IPv6 network of 64 bits counting as one; left out: no limit",
			rateFields, func(l *Limits) *Rate { return &l.Client })),
		sparse(object("caller", "the rate of one API key or token subject; left out: no limit",
			rateFields, func(l *Limits) *Rate { return &l.Caller })),
		timeout("request_timeout", "how long a request may take, its load included",
			10*time.Millisecond, 10*time.Minute, func(l *Limits) *time.Duration { return &l.RequestTimeout }),
		// The frontend keeps the others to a quarter of a second.
		timeout("header_timeout", "how long the head of a request may take to arrive",
			250*time.Millisecond, 5*time.Minute, func(l *Limits) *time.Duration { return &l.HeaderTimeout }),
		timeout("idle_timeout", "how long a connection may stay open without a request",
			250*time.Millisecond, time.Hour, func(l *Limits) *time.Duration { return &l.IdleTimeout }),
		timeout("stall_timeout", "how long one write to a client that does not read may take",
			250*time.Millisecond, 10*time.Minute, func(l *Limits) *time.Duration { return &l.StallTimeout }),
		withDefault(one("header", "the largest head of a request",
			size(4<<10, 1<<20), func(l *Limits) *int64 { return &l.Header }), &def),
		withDefault(one("connections", "the open connections; for one more an idle one is closed",
			count(1, 1_000_000), func(l *Limits) *int { return &l.Connections }), &def),
		written(one("connections_per_address", "the open connections of one client address, an IPv6 network of 64 bits counting as one; not of loopback and trusted proxies; left out: no limit",
			count(1, 1_000_000), func(l *Limits) *int { return &l.PerAddress })),
	}
}

func rateFields() []field[Rate] {
	return []field[Rate]{
		required(withoutZero(one("rate", "requests a second in the long run",
			perSecond(), func(r *Rate) *float64 { return &r.PerSecond }), func(r *Rate) bool { return r.PerSecond == 0 })),
		written(one("burst", "requests that may come at once after a pause; left out: the rate rounded up",
			count(1, maxRate), func(r *Rate) *int { return &r.Burst })),
	}
}

func tracingFields() []field[Tracing] {
	return []field[Tracing]{
		required(written(one("endpoint", "the URL of a collector, such as http://127.0.0.1:4318",
			collector(), func(t *Tracing) *string { return &t.Endpoint }))),
		withoutZero(one("sample", "the part of the requests that is traced, of those whose caller has not decided it; 0: none; left out: 0.01",
			fraction(), func(t *Tracing) *float64 { return &t.Sample }), func(t *Tracing) bool { return t.Sample == 0 }),
		written(one("service", "the name of the gateway in traces; left out: slipstream",
			label("a name of 1 to 128 bytes", 128), func(t *Tracing) *string { return &t.Service })),
	}
}
