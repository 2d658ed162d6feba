// Package iproto reads and writes MessagePack as Tarantool uses it, with the types of Tarantool's
// extensions. Types of a program that encode and decode themselves use this package: see Reader and
// Appender of package tarantool. It is based on the MessagePack specification
// (github.com/msgpack/msgpack), the Tarantool documentation, "MessagePack extensions", and, for
// what these leave open, the behavior of Tarantool 2.6.0.
//
// It provides
//
//   - append functions, which encode values;
//   - [Decoder], which reads values and allocates only for data that it copies;
//   - the types of Tarantool's extensions: [Decimal], [UUID], [Datetime],
//     [Interval], [BoxError], [Tuple], [Arrow];
//   - [ErrorCode], the codes that a server uses for errors.
//
// The package uses only bytes: no network, goroutines, clock or locks. Nothing that a peer sends
// makes it panic, and no memory is allocated for a length that was not checked against the
// available bytes. Slices that are returned as views alias the input; the documentation of each
// function says so.
//
// Values of this package are not safe for concurrent use, but different values may be used by
// different goroutines.
package iproto
