// Package iproto reads and writes MessagePack as Tarantool uses it, with the types of
// Tarantool's extensions. A type of a program that reads and writes itself does so with this
// package: see Reader and Appender of package tarantool. Sources: the MessagePack
// specification (github.com/msgpack/msgpack), the Tarantool documentation, "MessagePack
// extensions", and for what these leave open the answers of Tarantool 2.6.0.
//
// It consists of
//
//   - append functions, which encode values;
//   - [Decoder], which reads values and allocates only for what it copies;
//   - the types of Tarantool's extensions: [Decimal], [UUID], [Datetime],
//     [Interval], [BoxError], [Tuple], [Arrow];
//   - [ErrorCode], the reasons that a server gives for errors.
//
// The package knows only bytes: no network, goroutine, clock or lock. Nothing that a peer
// sends makes it panic, and no memory is allocated for a length that was not checked against the
// available bytes. Slices that readers return as views alias the input; each function says so.
//
// Nothing here is safe for concurrent use, but different values may be used by
// different goroutines.
package iproto
