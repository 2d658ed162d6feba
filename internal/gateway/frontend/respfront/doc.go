// Package respfront answers Redis clients for documents from a cache: GET depts:42
// returns the document that is /depts/42 over HTTP.
//
// A key is the name of a resource and the key columns, separated by colons, each in the
// canonical form of its type and percent-encoded where it holds a colon, a percent sign
// or a byte that a client cannot send. Read commands treat the document's JSON as a
// Redis string; a row that does not exist is null. Documents are read-only: commands
// that write are answered with -READONLY, and all others that are not in the table of
// command.go as unknown.
//
// [Server] owns the listener. The engine (internal/loop) passes the bytes of a connection
// to its session (session.go), which answers hits immediately (document.go). Documents
// that must be loaded are collected over the bytes of one read and loaded by other
// goroutines, and their answers keep their order (load.go). auth.go, client.go, info.go
// and describe.go are the other commands, command.go is their table; protocol.go reports
// malformed input with the messages of Redis; figures.go and logging.go have metrics and
// logs.
//
// Sources: the Redis serialization protocol specification and the documentation of the
// commands at redis.io; the error messages of a server of version 7.0.
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
// it up again. A token is a password, too. If it was not seen recently, a worker checks
// it, and the connection is paused (Conn.Pause), because later commands may need the
// login. The session keeps what the gate needs to verify that the token is still valid.
// Failed logins are charged to the address, 60 together and one per second; beyond that,
// no login is tried.
package respfront
