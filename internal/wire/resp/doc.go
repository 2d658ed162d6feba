// Package resp reads and writes RESP, the protocol of Redis, in versions 2 and 3, for clients and
// servers: replies and commands, with every type including streamed strings and aggregates,
// attributes and pushes. It is based on the Redis serialization protocol specification at
// redis.io/docs/latest/develop/reference/protocol-spec and, for what that omits, on the RESP3
// specification by antirez (github.com/antirez/RESP3).
//
// The package works only on bytes: it uses no network, goroutine, clock or lock. It consists of:
//
//   - [Scanner], which finds the messages of a server in a growing buffer;
//   - [Decoder], which reads a message value by value and hardly ever allocates memory;
//   - [Parse], which reads a message into a tree of [Value];
//   - append functions, which encode commands and replies;
//   - [CommandScanner], which finds the commands of a client, for servers.
//
// No input from a peer makes the package panic, and it never allocates memory for a length without
// first checking the length against a limit and against the bytes that are present. Strings and
// slices that readers return alias the input; each function documents for how long they are valid.
//
// Nothing here is safe for concurrent use, but different goroutines may use different values.
package resp
