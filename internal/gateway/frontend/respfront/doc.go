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
package respfront
