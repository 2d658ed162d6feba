// Package iproto reads and writes IPROTO, the binary protocol of Tarantool, and
// the MessagePack that it is made of, on both sides. Sources: the Tarantool
// documentation, "Box protocol" and "MessagePack extensions", the MessagePack
// specification (github.com/msgpack/msgpack), and for what these leave open the
// answers of a Tarantool 2.6.0.
//
// The package knows bytes alone: no network, goroutine, clock or lock. It
// consists of
//
//   - append functions, which encode values, requests and replies;
//   - [Decoder], which reads values and allocates only for what it copies;
//   - [Scanner], which cuts the messages of a server off a growing buffer;
//   - [ScanRequest], which cuts those of a client, for servers;
//   - [ParseBody], which reads the body of a reply;
//   - [ParseGreeting] and [ScrambleSHA1], for the begin of a connection;
//   - the types of Tarantool's extensions: [Decimal], [UUID], [Datetime],
//     [Interval], [BoxError], [Tuple], [Arrow].
//
// Nothing that a peer sends makes the package panic, and no memory is allocated
// for a length that has not been checked against the bytes that are there.
// Slices that readers return as views alias the input; each function says so.
//
// Nothing here is safe for concurrent use, but different values may be used by
// different goroutines.
package iproto
