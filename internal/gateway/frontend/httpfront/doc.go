// Package httpfront answers HTTP requests for documents out of a cache.
//
// A request goes through three rooms: [Service.Peek] and [Service.Answer] turn a
// [Request] into a [Response] and know no connection (request.go, service.go);
// two adapters fill the one and write the other: that of the event loop (session.go,
// later.go for what must be loaded, response.go) and that of net/http (nethttp.go),
// which gets what the loop does not answer (handed.go). Both write the fields that
// lines.go lists. [Server] owns listeners, limits and drain (server.go, conns.go).
//
// Inside Peek: admit.go lets in, path.go reads the key, document.go and batch.go
// answer, with encoding.go, compress.go and splice.go for their codings,
// conditional.go and form.go for their tags; fields.go, cors.go and problem.go
// dress the answer. figures.go and logging.go tell of it.
//
// Sources: RFC 9110 (semantics, conditional requests), RFC 9111 (caching),
// RFC 9211 (Cache-Status), RFC 9457 (problem details).
package httpfront
