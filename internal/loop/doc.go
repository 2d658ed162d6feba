// Package loop is the server engine: it owns sockets and buffers and hands bytes to
// the sessions of a protocol, which it does not know.
//
// On Linux a few goroutines, one a processor, each wait with epoll for thousands of
// connections and call their sessions (eventloop_linux.go); an answer that is there at
// once never meets another goroutine. Everywhere, and for TLS, the same contract is
// kept by a goroutine a connection (goroutines.go, goroutines_conn.go, goroutines_turn.go).
//
// [Server] is the whole, [Conn] one connection as its [Session] sees it, [Output] what
// is to be sent, [Deferred] the place of an answer that comes later, [Payload] a large input.
//
// Shared by both backends: session.go and config.go (the contract), conn.go (the state
// of a connection), deferred.go (answers in order), output.go, expect.go (large inputs), limits.go
// (limits of one connection), sweep.go (time limits).
package loop
