// Package loop is the server engine. It owns sockets and buffers and passes the bytes of
// each connection to a session; it knows no protocol.
//
// On Linux a few goroutines, one for each processor, wait with epoll for thousands of
// connections and call their sessions (eventloop_linux.go). An answer that is available
// immediately involves no other goroutine. On other systems, and for TLS, a goroutine for
// each connection keeps the same contract (goroutines.go, goroutines_conn.go,
// goroutines_turn.go).
//
// A [Server] serves connections. A [Conn] is one connection as its [Session] sees it, an
// [Output] what is to be sent, a [Deferred] the place of an answer that comes later, and a
// [Payload] a large input.
//
// Both backends share session.go and config.go (the contract), conn.go (the state of a
// connection), deferred.go (answers in order), post.go (tasks of other goroutines), output.go,
// expect.go (large inputs), limits.go (limits of one connection), sweep.go (time limits),
// budget.go and account.go (memory), and places.go (how many connections there are).
package loop
