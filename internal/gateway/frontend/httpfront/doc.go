// Package httpfront answers HTTP requests for documents from a cache.
//
// A request passes through three parts: [Service.Peek] and [Service.Answer] turn a
// [Request] into a [Response] and do not depend on a connection (request.go,
// service.go); two adapters fill in the request and write the response: that of the
// event loop (session.go, later.go for documents that must be loaded, response.go) and
// that of net/http (nethttp.go), which serves the requests that the loop does not
// (handed.go). Both write the fields that lines.go lists. [Server] owns listeners,
// limits and drain (server.go, conns.go).
//
// Inside Peek: admit.go admits the request, path.go reads the key, document.go and
// batch.go answer, with encoding.go, compress.go and splice.go for their codings,
// conditional.go and form.go for their tags; fields.go, cors.go and problem.go add
// header fields. figures.go and logging.go report it.
//
// Sources: RFC 9110 (semantics, conditional requests), RFC 9111 (caching),
// RFC 9211 (Cache-Status), RFC 9457 (problem details).
//
// # The life of a request
//
//  1. The head was read by the event loop or by net/http. front.fill and handler.fill
//     take from it only what an answer may depend on: method, target, conditionals,
//     Accept-Encoding, credentials, Origin, the client's address (X-Forwarded-For only
//     from trusted proxies), ids. At listeners that compare Host with names (hosts.go),
//     they report a wrong one; a connection remembers the Host that was accepted last,
//     so that a hit compares bytes. The clock (CLOCK_BOOTTIME) is read after the read
//     that brought the request: Request.Start.
//  2. Service.ask reads the request and admits it, the cheapest refusal first: Host,
//     rate limit of the address (admit), method, resource, identity and access
//     (authorize, package access), rate limit of the caller, key. The target is cut
//     at slashes, and each segment is percent-decoded and compared with the canonical
//     form of its key column (package resource). Any other form is 400, so one row
//     never has two entries. The ID of a key of one column is a part of the request
//     line; only a miss copies it. What Peek has found out stays in the request for
//     Answer, so nothing is counted twice.
//  3. Answer checks a signature that was not seen recently. Slots for that are given to
//     each client in turn, and the wait ends with the request (504); if 1,024 requests
//     wait, one of the client with the most is refused (503). A wrong signature is
//     charged to its address as ten requests. After 200 of them, and 10 a second,
//     tokens of that address that would have to be checked are refused (429), except
//     for private addresses, which may be proxies that are not configured as such. If
//     the key set is fetched, one goroutine does that: at the start, at each refresh,
//     and when a token has an unknown kid, at most once in 5 s. Such tokens release
//     their slot, wait for the next fetch that begins, and are checked again; a fetch
//     that fails changes nothing.
//  4. A hit fills the Response with the document's HTTP form (entity tag and length
//     as header values, made on first use), or with its form in gzip or zstd. The
//     rest of a hit is net/http and the kernel. A miss goes to Service.Answer and
//     [cache.Cache.Get].
//  5. Service.Note ends every request: status, bytes, time by source, slowest keys,
//     slow-request log, span. It measures until the answer is complete, not until a
//     slow client has read it. A document that was loaded is charged to the rate
//     limit as one more request, ten of a batch as one, after the fact: the next
//     request is refused, not this one.
//
// # Encodings
//
// A body of 256 bytes or more is compressed once, by the first request that accepts
// it, and kept as a form: charged to the budget, and dropped before its document. The
// number of bodies compressed at a time is at most that of processors. If all are
// busy, the response is sent uncompressed, which is always right because Vary is
// always sent. A form that saves less than a tenth is remembered as useless.
// Documents that no tier holds are not compressed, unless the client refuses
// identity. What is made for such a client is kept as a form, too. Where that is
// impossible (no tier holds the document, there is no room, or the form was found
// useless), the last 32 bodies of up to 256 KiB are remembered (forced.go), and
// larger documents are refused with 406. Waiting for a processor ends with the
// request. Each coding has its own entity tag, the document's with a suffix.
//
// # Batches
//
// Batches (/depts?key=1&key=2) are spliced from cached bytes
// (docs/decisions/0007-http-surface.md). Cache.PeekMany finds the documents, or
// GetMany, which passes all missing keys to the loader together; then brackets, bodies
// and commas are parts of one answer, and nothing is copied. In gzip the parts are the
// deflate blocks of the documents' own forms: each ends at a byte and refers to nothing
// before it, so any sequence of them is a valid stream. Commas and documents without a
// form are sent in stored blocks. Only the checksum reads the text once more. Each
// document keeps the promise; two of them may show the database at different moments.
//
// # Memory that clients hold
//
// An answer consists of references to documents; a client that does not read keeps them
// alive after the cache has dropped them. So a batch is bounded (64 MiB), batches that
// load share 64 MiB by an estimate, a write may take 30 s, and answers of 64 KiB and
// more that are being written or wait for their turn are bounded together (a quarter of
// the memory tier, at least 256 MiB). Above that, connections of the address that owes
// the most are closed, and above one and a half times that, such an answer is refused
// with 503.
//
// # The path of the event loop
//
// Plain requests are answered in the loop, and everything else by net/http:
//
//   - http1.Scanner accepts a strict GET, HEAD or OPTIONS (preflights) without a body:
//     origin form, CR LF, one Host, no Transfer-Encoding, no Expect, no Content-Length
//     other than 0, no Upgrade except the offer of h2c. This path frames no body, so
//     there is nothing to smuggle.
//   - Service.Peek answers from the tiers. Its strings are the read buffer's bytes;
//     what outlives the call is copied (Request.own, spans, logs). A miss is
//     deferred, and a worker calls Service.Answer; past 20,000 of them each
//     connection may have one.
//   - Most hits query no tier: frontend/recent has a table of 4,096 targets and
//     documents for each lane, and Cache.Again decides whether a document is still the
//     answer: first the horizon, then whether a memory tier holds the document (a tier
//     drops it before an invalidation returns, and the horizon that covers the
//     invalidation is published after that), then generation and age. The tier sees the
//     first 16 requests for a document and every eighth after that. Plain hits are
//     counted once per read.
//   - A connection with a request that the scanner does not accept is detached to
//     net/http and stays there. Server.EachHandover counts them by reason; they are
//     less than 0.1 % of the requests of real clients and proxies (test/clients,
//     TestPlain...). A connection of HTTP/2 is detached after the handshake and served
//     without TLS of net/http's own, with the limits and budget of other detached
//     connections (conns.go). A stream counts until it has ended, which is after its
//     handler if the client gives no window.
//   - A client's certificate is read once for each connection: access.NewCertificate
//     keeps the names (SAN) and the expiry. access.Rule.Admit verifies credentials
//     and certificate together; gateway/certificate.go decides last in each
//     handshake, resumed ones included.
package httpfront
