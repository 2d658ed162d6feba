// Package resp reads and writes RESP, the protocol of Redis, in versions 2 and
// 3, on both sides: replies and commands, every type including streamed strings
// and aggregates, attributes and pushes. Sources: the Redis serialization
// protocol specification at
// redis.io/docs/latest/develop/reference/protocol-spec, and the RESP3
// specification by antirez (github.com/antirez/RESP3) for what the former
// omits.
//
// The package works only on bytes: no network, goroutine, clock or lock. It
// consists of
//
//   - [Scanner], which cuts the messages of a server off a growing buffer;
//   - [Decoder], which reads a message value by value and allocates nothing;
//   - [Parse], which reads a message into a tree of [Value];
//   - append functions, which encode commands and replies;
//   - [CommandScanner], which cuts the commands of a client, for servers.
//
// Nothing that a peer sends makes the package panic, and no memory is allocated
// for a length that has not been checked against a limit and against the bytes
// that are there. Strings and slices returned by readers alias the input; each
// function says for how long.
//
// Nothing here is safe for concurrent use, but different values may be used by
// different goroutines.
package resp
