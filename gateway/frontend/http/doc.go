// Package httpfront answers HTTP requests for documents out of a cache.
//
// A request goes through three rooms: [Service.Peek] and [Service.Answer] turn a
// [Request] into a [Response] and know no connection (service.go, with path.go,
// conditional.go, form.go and problem.go at its side); the adapter of net/http
// fills the one and writes the other (nethttp.go); [Server] owns the listener,
// its limits and its drain (server.go). An event loop can call the same Peek.
//
// Sources: RFC 9110 (semantics, conditional requests), RFC 9111 (caching),
// RFC 9211 (Cache-Status), RFC 9457 (problem details).
package httpfront
