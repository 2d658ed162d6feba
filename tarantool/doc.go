// Package tarantool is a client for Tarantool that lets the requests of many goroutines
// travel as few large writes: what is ready to be sent while replies are under way goes out
// together, without timers and without batches in the program that uses it.
//
//	c, err := tarantool.Connect(ctx, tarantool.Options{Addr: "127.0.0.1:3301", User: "app", Password: "secret"})
//	...
//	defer c.Close()
//	users := tarantool.SpaceOf[User](c, "users")
//	var u User
//	found, err := users.Get(ctx, &u, tarantool.Int(42))
//
// # Requests and results
//
// A [Request] is an immutable value. [Client.Do] sends one and waits for its reply;
// [Client.Start] sends one and returns a [Future], whose result can be taken in three ways:
// decoded into a destination, as a general value, or after waiting on a channel together with
// other things. A [Space] has methods for tuples of a type of the program.
//
// # Values
//
// A value that is sent may be nil, a boolean, a number, a string, []byte, [iproto.Decimal],
// [iproto.UUID], [iproto.Datetime], time.Time, [iproto.Interval], a slice, a map, a pointer, a
// struct, which is sent as an array of its exported fields, or an [Appender]. A destination is
// a pointer to any of them, to an interface, a [Reader], or a [Raw]. A type with the methods of
// Appender and Reader, which use package [iproto], is neither allocated for nor reflected upon.
// A tuple with more fields than a struct has, or fewer, fits.
//
// # Schema
//
// Names of spaces and indexes are looked up in the schema, which is loaded when the first name
// is used, and anew for each connection that is opened: there may be another server behind it,
// or another life of the same. A request travels on the connection whose schema its numbers are
// of, and says of which version; a server that has another by then refuses it, and it is made
// again with the numbers of now. Should the connection end before the request was sent, the names
// are looked up where it goes instead. So no request reaches a space that was given the number of
// one that is gone.
//
// # Errors
//
// Errors of calls are of type [slipstream.Error], whose Outcome says whether the server may
// have executed the request; [slipstream.OutcomeOf] finds it in any error. An error that the server
// answered with is a [ServerError] in its chain. A statement that the server refused changed
// nothing (Refused); a function that failed may have done anything before (Executed).
// Requests whose outcome is NotSent are made again up to Options.Retries times, and those
// that read, and those that are [ProcedureRequest.Idempotent], also when they were cut off.
// A request that names no space, and of which nothing was sent when its connection ended, is sent
// on another connection, without a pause, unless Options.FailFast is set.
//
// # Observability
//
// [Client.Stats] and [Pool.Stats] return counters, gauges and histograms. Options.Observer is notified of each
// request, with the context of its caller, OnSlow of slow requests, OnEvent of connections. None
// of them gets keys or values. Package slipstreamprom exports all of it to Prometheus, package
// slipstreamotel requests to OpenTelemetry.
//
// # Old servers
//
// What a server lacks is refused here with [UnsupportedError], because servers pass over parts
// of requests that they do not know: a transaction would commit each of its statements, and
// each page of a select would be the first.
//
// [iproto]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto
// [iproto.Decimal]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto#Decimal
// [iproto.UUID]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto#UUID
// [iproto.Datetime]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto#Datetime
// [iproto.Interval]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto#Interval
// [slipstream.Error]: https://pkg.go.dev/github.com/slipstream-go/slipstream#Error
// [slipstream.OutcomeOf]: https://pkg.go.dev/github.com/slipstream-go/slipstream#OutcomeOf
package tarantool
