package config

import (
	"net/netip"
	"runtime"
	"slices"
	"time"
)

// HTTP says how documents are served over HTTP, besides the address, which is
// [Frontends.HTTP]. The zero value of a field means its default.
type HTTP struct {
	// Engine is what serves connections. Default: [Loop] on Linux, [NetHTTP]
	// elsewhere.
	Engine Engine
	// Compression names the content encodings that documents are sent in, the
	// preferred first: "zstd" and "gzip". Nil means both in this order, empty
	// and not nil none.
	Compression []string
	// Batch is the number of keys that one request may ask for. Default 1,000.
	Batch int
	// HideOpenAPI leaves /openapi.json out: "openapi: false" in the file.
	HideOpenAPI bool
	// TrustedProxies are the addresses whose X-Forwarded-For is believed to
	// name the client. Default: none, the client is who connected.
	TrustedProxies []netip.Prefix
	// TrustUnix believes X-Forwarded-For of whoever connects over a unix socket,
	// whose mode and owner say who can: the word unix among trusted_proxies in the
	// file.
	TrustUnix bool
	// Hosts are the names that requests may have in Host, besides localhost and IP
	// addresses; [AnyHost] is every name. Default: listeners at loopback addresses accept no
	// others, unless TrustedProxies cover such an address; other listeners accept every name.
	// See [HTTP.ChecksHost].
	Hosts []string

	CORS   CORS
	Limits Limits
}

// AnyHost is the element of Hosts that turns the comparison off.
const AnyHost = "*"

// ChecksHost reports whether a listener that is bound to a loopback address, or one that is not,
// compares the Host of requests with names. It keeps web pages out whose names lead to the
// gateway (DNS rebinding). A proxy on this machine may pass on a Host of any name, and is the one
// to compare it.
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
	// Loop is an event loop a processor. Where the system has no epoll, it has
	// a goroutine a connection. What it does not do itself, such as HTTP/1.1
	// with a body, it hands over to NetHTTP.
	Loop Engine = "loop"
	// NetHTTP is Go's own server.
	NetHTTP Engine = "net/http"
)

// defaultEngine is the one that is the quicker on this system.
func defaultEngine() Engine {
	if runtime.GOOS == "linux" {
		return Loop
	}
	return NetHTTP
}

// CORS says which web pages of other origins may read answers. Without Origins
// none may, and the other fields mean nothing.
type CORS struct {
	// Origins are "*", every page, or scheme://host[:port] as browsers send
	// it: lower case, no default port, nothing after it.
	Origins []string
	// Headers are the request fields that pages may send besides those that
	// the gateway itself knows.
	Headers []string
	// Credentials lets pages send cookies and the like. Refused beside "*":
	// any page could then read with its visitor's rights.
	Credentials bool
	// MaxAge is how long a browser may remember the answer to a preflight.
	// Default 10 min; negative: not at all.
	MaxAge time.Duration
}

// Limits bounds what clients may ask of the HTTP frontend.
type Limits struct {
	// Client is the rate of one client address, an IPv6 network of 64 bits
	// counting as one. Default: no limit.
	Client Rate
	// Caller is the rate of one API key or token subject. Default: no limit.
	Caller Rate
	// RequestTimeout bounds a request, its load included. Default 10 s.
	RequestTimeout time.Duration
	// HeaderTimeout bounds the arrival of a request's head. Default 5 s.
	HeaderTimeout time.Duration
	// IdleTimeout is how long a connection may stay open without a request.
	// Default 60 s.
	IdleTimeout time.Duration
	// StallTimeout bounds one write to a client that does not read.
	// Default 30 s.
	StallTimeout time.Duration
	// Header bounds the head of a request, in bytes. Default 64 KiB.
	Header int64
	// Connections is the number of open connections; for one more an idle one is
	// closed. Default 17,000.
	Connections int
	// PerAddress is the number of open connections of one address, an IPv6 network of
	// 64 bits counting as one; not of loopback and trusted proxies. If zero, there is
	// no limit.
	PerAddress int
}

// Rate is a rate of requests. The zero value means no limit.
type Rate struct {
	// PerSecond is the number of requests a second in the long run.
	PerSecond float64
	// Burst is the number of requests that may come at once after a pause.
	// Default: PerSecond rounded up.
	Burst int
}

// Tracing says where spans of requests are sent, as OpenTelemetry over HTTP.
// Without Endpoint there are none, and the other fields mean nothing.
type Tracing struct {
	// Endpoint is the URL of a collector, such as http://127.0.0.1:4318. It
	// takes no credentials; the environment does (OTEL_EXPORTER_OTLP_HEADERS).
	Endpoint string
	// Sample is the fraction of requests that are traced, of those whose
	// caller has not decided it. Default 0.01; negative: none.
	Sample float64
	// Service is the name of the gateway in traces. Default "slipstream".
	Service string
}

// Content encodings.
const (
	encodingZstd = "zstd"
	encodingGzip = "gzip"
)

// maxRate is above what one machine can answer.
const maxRate = 10_000_000

// everyOrigin reports whether the pages of every origin may read.
func (c *CORS) everyOrigin() bool { return slices.Contains(c.Origins, "*") }
