// Package box reads and writes IPROTO, the binary protocol of Tarantool, on both sides:
// frames, headers, and the bodies of requests and replies. The values in them are MessagePack,
// which package [github.com/slipstream-go/slipstream/tarantool/iproto] reads and writes.
// Sources: the Tarantool documentation, "Box protocol", and for what it leaves open the
// answers of a Tarantool 2.6.0.
//
// It consists of
//
//   - append functions, which encode requests and replies;
//   - [Scanner], which cuts the messages of a server off a growing buffer;
//   - [ScanRequest], which cuts those of a client, for servers;
//   - [ParseBody], which reads the body of a reply;
//   - [ParseGreeting] and [ScrambleSHA1], for the start of a connection.
//
// The package knows only bytes: no network, goroutine, clock or lock. Nothing that a peer
// sends makes it panic, and no memory is allocated for a length that has not been checked
// against the bytes that are there. Slices that readers return as views alias the input; each
// function says so.
//
// Nothing here is safe for concurrent use, but different values may be used by different
// goroutines.
package box
