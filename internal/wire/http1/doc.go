// Package http1 reads the heads of simple HTTP/1.1 requests and writes the heads of responses (RFC
// 9112).
//
// It accepts only GET, HEAD and OPTIONS requests without a body, in origin form, that follow the
// grammar strictly. For any other request, the verdict is [Other] instead of an error, and the
// caller hands the connection to net/http, from the first byte of that head on. So the package
// needs no framing of request bodies, no lenience, and no second reading of a request: whatever
// [Scanner.Scan] accepts has exactly the same meaning in net/http, which a fuzz target checks, and
// it makes no claim about anything that it does not accept.
//
// For clients, the package also reads the heads of responses with any status, and finds the end of
// chunked bodies: [ParseResponseHead], [ChunkScanner].
//
// The package works only on bytes: it uses no network, goroutine, clock or lock. It never allocates
// memory, and it inspects each byte a fixed number of times, however the bytes arrive. Nothing here
// is safe for concurrent use, but different goroutines may use different values.
package http1
