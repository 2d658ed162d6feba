// Package respfront answers Redis clients for documents out of a cache: GET depts:42
// is what HTTP calls /depts/42.
//
// A key is the name of a resource and the key columns, divided by colons, each in the
// canonical form of its type and percent-encoded where it holds a colon, a percent
// sign or a byte that a client cannot send. What a read command of Redis says of a
// string it says of the document's JSON; a row that does not exist is null. Documents
// are only read: commands that write are answered with -READONLY, all others that are
// not in the table of command.go as ones that do not exist.
//
// [Server] owns the listener. The engine (internal/loop) hands the bytes of a
// connection to its session (session.go), which answers hits there and then
// (document.go). Documents that must be loaded are gathered while the bytes of one read
// last and loaded by goroutines of their own, and their answers keep their places
// (load.go). auth.go, client.go, info.go and describe.go are the other commands,
// command.go is their table; protocol.go says what is wrong with bytes in the words of
// Redis; figures.go and logging.go tell of it all.
//
// Sources: the Redis serialization protocol specification and the documentation of the
// commands at redis.io; the words of errors as a server of version 7.0 answers.
//
// # Inside
//
// Commands are cut by internal/wire/resp, and hits are answered in the loop, a GET from
// a table of package recent. The misses of one read are loaded together, a worker for
// each resource, and completed last to first, so that a pipeline's answers leave in
// large pieces. Keys are resource:k1:k2 in the canonical form that HTTP paths have.
// Scanners and turns are pooled: an idle session holds 208 bytes. At most 256
// connections may have a command over 64 KiB in flight. CLIENT LIST visits only the
// sessions of the same caller.
//
// If an API key is removed from the key file, its connections are logged out within 5
// s; if it expires, at that time: a session keeps the hash of its key and when to look
// it up again. A token is a password, too. If it was not seen lately, a worker checks
// it, and the connection is paused (Conn.Pause), because what follows may need the
// login. The session keeps what the gate needs to see whether the token is still valid.
// Failed logins are charged to the address, 60 at once and one a second; beyond that,
// no login is tried.
package respfront
