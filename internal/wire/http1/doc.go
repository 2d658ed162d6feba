// Package http1 reads the heads of the plainest HTTP/1.1 requests and writes
// heads of answers (RFC 9112).
//
// It knows GET, HEAD and OPTIONS without a body, in origin form, strictly by the grammar,
// and no other requests. Anything else is not answered with an error: it is [Other], and the
// caller hands the connection to net/http from the first byte of that head on. So there is
// no framing of bodies here, no lenience, and no two readings of one request: what
// [Scanner.Scan] accepts means to net/http exactly what it means here, which a fuzz target
// compares, and what it does not accept it has no opinion on.
//
// Of responses, as clients get them, it reads the heads, whatever their status, and finds
// the end of bodies in chunks: [ParseResponseHead], [ChunkScanner].
//
// The package works only on bytes: no network, goroutine, clock or lock. It
// allocates nothing, and inspects each byte a fixed number of times, however the
// bytes arrive. Nothing here is safe for concurrent use, but different values may be
// used by different goroutines.
package http1
