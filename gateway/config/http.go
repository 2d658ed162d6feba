package config

import (
	"math"
	"net/netip"
	"runtime"
	"slices"
	"time"

	"github.com/goccy/go-yaml/ast"
)

// HTTP says how documents are served over HTTP, apart from the address, which is
// in [Frontends.HTTP]. The zero value of a field means its default.
type HTTP struct {
	Engine Engine // Default: [Loop] on Linux, [NetHTTP] elsewhere.
	// Compression names content encodings, the preferred first: "zstd" and "gzip". Nil means
	// both in this order; empty but not nil means none.
	Compression    []string
	Batch          int            // Keys that one request may contain. Default 1,000.
	HideOpenAPI    bool           // Leaves /openapi.json out: "openapi: false" in the file.
	TrustedProxies []netip.Prefix // Proxies whose X-Forwarded-For is trusted. Default: none.
	// TrustUnix trusts X-Forwarded-For from all clients that connect over a unix socket, whose
	// mode and owner limit them: the word unix among trusted_proxies in the file.
	TrustUnix bool
	// Hosts are the names that requests may have in Host, besides localhost and IP addresses;
	// [AnyHost] matches every name. Default: see [HTTP.ChecksHost].
	Hosts []string

	CORS   CORS
	Limits Limits
}

// CORS says which web pages of other origins may read answers. Without Origins
// none may, and the other fields are ignored.
type CORS struct {
	// Origins are "*", which matches every page, or scheme://host[:port] as
	// browsers send it: in lower case, without a default port, and nothing after
	// it.
	Origins     []string
	Headers     []string      // Request fields that pages may send in addition to those that the gateway knows.
	Credentials bool          // Lets pages send cookies and the like. Refused with "*".
	MaxAge      time.Duration // How long a browser may cache the answer to a preflight. Default 10 min; if negative, not at all.
}

// Limits bounds the use of the HTTP frontend by clients. An IPv6 network of 64 bits counts as one
// address.
type Limits struct {
	Client         Rate          // Rate of one client address. Default: no limit.
	Caller         Rate          // Rate of one API key or token subject. Default: no limit.
	RequestTimeout time.Duration // Maximum duration of a request, its load included. Default 10 s.
	HeaderTimeout  time.Duration // Maximum time until a request's head has arrived. Default 5 s.
	IdleTimeout    time.Duration // How long a connection may stay open without a request. Default 60 s.
	StallTimeout   time.Duration // Maximum duration of one write to a client that does not read. Default 30 s.
	Header         int64         // The largest head of a request, in bytes. Default 64 KiB.
	Connections    int           // Maximum number of open connections; at the limit an idle one is closed for a new one. Default 17,000.
	PerAddress     int           // Open connections of one address. If zero, there is no limit.
}

// Rate is a rate of requests. The zero value means no limit.
type Rate struct {
	PerSecond float64 // In the long run.
	Burst     int     // Requests that may come together after a pause. Default: PerSecond rounded up.
}

// AnyHost is the element of Hosts that turns the comparison off.
const AnyHost = "*"

// ChecksHost reports whether a listener that is bound to a loopback address, or one that is not,
// compares the Host of requests with names. It rejects web pages whose names resolve to the gateway
// (DNS rebinding). By default listeners at loopback addresses do, unless TrustedProxies cover such an
// address: a proxy on this machine may pass on a Host of any name, and is the one that should compare
// it.
func (h *HTTP) ChecksHost(atLoopback bool) bool {
	if len(h.Hosts) > 0 {
		return !slices.Contains(h.Hosts, AnyHost)
	}
	return atLoopback && !slices.ContainsFunc(h.TrustedProxies, func(p netip.Prefix) bool {
		return p.Overlaps(loopback4) || p.Contains(netip.IPv6Loopback())
	})
}

var loopback4 = netip.MustParsePrefix("127.0.0.0/8")

// Engine is what serves the connections of a frontend.
type Engine string

// Engines of the HTTP frontend.
const (
	// Loop is one event loop per processor. Where the system has no epoll, it uses
	// one goroutine per connection. Requests that it does not support itself, such
	// as HTTP/1.1 with a body, are passed to NetHTTP.
	Loop Engine = "loop"
	// NetHTTP is Go's own server.
	NetHTTP Engine = "net/http"
)

// defaultEngine returns the faster engine on this system.
func defaultEngine() Engine {
	if runtime.GOOS == "linux" {
		return Loop
	}
	return NetHTTP
}

// Content encodings.
const (
	encodingZstd = "zstd"
	encodingGzip = "gzip"
)

// Bounds of lists. Encodings that do not exist get a message each.
const (
	maxCodings     = 16
	maxProxies     = 1024
	maxHosts       = 256
	maxOrigins     = 256
	maxCORSHeaders = 64
)

// maxRate is above what one machine can answer.
const maxRate = 10_000_000

func (h *HTTP) fields() []field {
	return []field{
		{Name: "engine", Value: scalar(&h.Engine, oneOf(Loop, NetHTTP)), Default: defaultEngine(), Reload: AtRestart,
			Doc: "what serves connections: an event loop, or Go's own server; if omitted, loop on Linux and net/http elsewhere"},
		{Name: "compression", Value: h.compression(), Default: []string{encodingZstd, encodingGzip}, Reload: AtReload,
			Doc: "the content encodings that documents are sent in, the preferred first; [] or none means no compression"},
		{Name: "batch", Value: scalar(&h.Batch, count(1, 10_000)), Default: 1000, Reload: AtReload,
			Doc: "the maximum of keys in one request"},
		{Name: "openapi", Value: scalar(&h.HideOpenAPI, inverted()), Default: false, Always: true, Reload: AtReload,
			Doc: "serves a description of the resources that the caller may read at /openapi.json"},
		{Name: "trusted_proxies", Value: h.proxies(), Reload: AtRestart,
			Doc: "the addresses and networks whose X-Forwarded-For is trusted to name the client, " +
				"and unix for clients of unix sockets; if omitted, none is trusted and the client is the peer of the connection"},
		{Name: "hosts", Value: list(&h.Hosts, hostName(), maxHosts), Reload: AtReload,
			Doc: `the names that requests may have in Host, besides localhost and IP addresses; "*" matches every name; ` +
				"if omitted, no others at loopback addresses unless trusted_proxies cover one, and every name elsewhere"},
		{Name: "cors", Value: object(h.CORS.fields), Reload: AtReload,
			Doc: "which web pages of other origins may read answers; if omitted, none",
			Check: func(p *parser, v value) {
				if h.CORS.Credentials && slices.Contains(h.CORS.Origins, "*") {
					p.failAt(within(v, "credentials"), `true beside the origin "*" would let every page read `+
						"with the rights of its visitor; expected a list of origins, or credentials: false")
				}
			}},
		{Name: "limits", Value: object(h.Limits.fields), Doc: "limits for clients of the HTTP frontend"},
	}
}

// compression accepts a list, which may be empty, or "none".
func (h *HTTP) compression() setting {
	const none = "none"
	codings := list(&h.Compression, oneOf(encodingZstd, encodingGzip), maxCodings)
	return setting{
		read: func(p *parser, v value) {
			h.Compression = []string{}
			if n, isList := v.node.(*ast.SequenceNode); isList {
				if len(n.Values) > 0 {
					codings.read(p, v)
				}
				return
			}
			const expected = "a list such as [zstd, gzip], or none"
			if t, ok := p.scalar(v, expected); ok && t.s != none {
				p.failAt(v, "%s; expected %s", t, expected)
			}
		},
		write: func() any {
			if h.Compression != nil && len(h.Compression) == 0 {
				return none
			}
			return codings.write()
		},
		schema: func() schema {
			word := schema{"type": "string", "enum": []string{none}}
			return schema{"oneOf": []any{codings.with("minItems", 0).schema(), word}}
		},
		set: func(def any) { h.Compression = def.([]string) },
	}
}

// proxies accepts addresses and networks, which are in one field of the Go struct, and
// the word unix, which is in another.
func (h *HTTP) proxies() setting {
	var words []string
	trusted := list(&words, proxy(), maxProxies)
	return setting{
		schema: trusted.schema,
		read: func(p *parser, v value) {
			trusted.read(p, v)
			for _, word := range words {
				if word == trustUnix {
					h.TrustUnix = true
				} else {
					network, _ := parseProxy(word) // proxy has
					h.TrustedProxies = append(h.TrustedProxies, network)
				}
			}
		},
		write: func() any {
			words = nil
			for _, network := range h.TrustedProxies {
				words = append(words, formatProxy(network))
			}
			if h.TrustUnix {
				words = append(words, trustUnix)
			}
			return trusted.write()
		},
	}
}

func (c *CORS) fields() []field {
	return []field{
		{Name: "origins", Value: list(&c.Origins, webOrigin(), maxOrigins), Required: true,
			Doc: `the origins whose pages may read: "*" matches every page, others must match exactly`},
		{Name: "headers", Value: list(&c.Headers, headerName(), maxCORSHeaders),
			Doc: "the request fields that pages may send in addition to those that the gateway knows"},
		{Name: "credentials", Value: scalar(&c.Credentials, truth()),
			Doc: `lets pages send cookies and the like; not allowed with the origin "*"`},
		{Name: "max_age", Value: scalar(&c.MaxAge, durationOrOff(24*time.Hour)), Default: 10 * time.Minute,
			If:  func() bool { return len(c.Origins) > 0 },
			Doc: "how long a browser may remember the answer to a preflight; 0s means not at all"},
	}
}

// Bounds of the limits of both frontends, which enforce timeouts, except that of a request, to
// a quarter of a second.
const (
	leastTimeout   = 250 * time.Millisecond
	mostTimeout    = 10 * time.Minute
	maxConnections = 1_000_000
)

func requestTimeout() kind[time.Duration] { return duration(10*time.Millisecond, mostTimeout) }

func (l *Limits) fields() []field {
	return []field{
		{Name: "client", Value: object(l.Client.fields), Reload: AtReload,
			Doc: "the rate of one client address, an IPv6 network of 64 bits counting as one; if omitted, no limit"},
		{Name: "caller", Value: object(l.Caller.fields), Reload: AtReload,
			Doc: "the rate of one API key or token subject; if omitted, no limit"},
		{Name: "request_timeout", Value: scalar(&l.RequestTimeout, requestTimeout()), Default: 10 * time.Second, Reload: AtRestart,
			Doc: "how long a request may take, its load included"},
		{Name: "header_timeout", Value: scalar(&l.HeaderTimeout, duration(leastTimeout, 5*time.Minute)),
			Default: 5 * time.Second, Reload: AtRestart, Doc: "how long the head of a request may take to arrive"},
		{Name: "idle_timeout", Value: scalar(&l.IdleTimeout, duration(leastTimeout, time.Hour)),
			Default: time.Minute, Reload: AtRestart, Doc: "how long a connection may stay open without a request"},
		{Name: "stall_timeout", Value: scalar(&l.StallTimeout, duration(leastTimeout, mostTimeout)),
			Default: 30 * time.Second, Reload: AtRestart, Doc: "how long one write to a client that does not read may take"},
		{Name: "header", Value: scalar(&l.Header, size(4<<10, 1<<20)), Default: int64(64 << 10), Reload: AtRestart,
			Doc: "the largest head of a request"},
		{Name: "connections", Value: scalar(&l.Connections, count(1, maxConnections)), Default: 17_000, Reload: AtRestart,
			Doc: "the maximum of open connections; at the limit an idle one is closed for a new one"},
		{Name: "connections_per_address", Value: scalar(&l.PerAddress, count(1, maxConnections)), Reload: AtRestart,
			Doc: "the maximum of open connections of one client address, an IPv6 network of 64 bits counting as one; " +
				"loopback and trusted proxies are exempt; if omitted, no limit"},
	}
}

func (r *Rate) fields() []field {
	return []field{
		{Name: "rate", Value: scalar(&r.PerSecond, perSecond()), Required: true,
			Doc: "requests per second in the long run"},
		{Name: "burst", Value: scalar(&r.Burst, count(1, maxRate)),
			Doc: "requests that may come together after a pause; if omitted, the rate rounded up",
			Default: func() any {
				if !(r.PerSecond > 0) { // nor NaN
					return nil
				}
				return int(math.Ceil(min(r.PerSecond, maxRate)))
			}},
	}
}
