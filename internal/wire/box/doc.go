// Package box reads and writes IPROTO, the binary protocol of Tarantool, for clients and servers:
// frames, headers, and the bodies of requests and replies. The values in them are MessagePack,
// which package [github.com/slipstream-go/slipstream/tarantool/iproto] reads and writes. It is
// based on the page "Box protocol" of the Tarantool documentation and, where that is incomplete, on
// the replies of a Tarantool 2.6.0 server.
//
// It consists of:
//
//   - append functions, which encode requests and replies;
//   - [Scanner], which finds the messages of a server in a growing buffer;
//   - [ScanRequest], which finds the requests of a client, for servers;
//   - [ParseBody], which reads the body of a reply;
//   - [ParseGreeting] and [ScrambleSHA1], for the start of a connection.
//
// The package works only on bytes: it uses no network, goroutine, clock or lock. No input from a
// peer makes it panic, and it never allocates memory for a length without first checking that so
// many bytes are present. Slices that are documented as views alias the input.
//
// Nothing here is safe for concurrent use, but different goroutines may use different values.
package box
