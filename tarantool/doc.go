// Package tarantool is a client for Tarantool that sends the requests of many goroutines in
// few large writes: requests that become ready while replies are in flight are sent together,
// without timers and without batches in the calling program.
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
// is used, and again for each new connection: it may lead to another server, or to the same one
// after a restart. A request is sent on the connection whose schema its numbers belong to, with the
// version of the schema; a server that has another version by then refuses it, and it is retried
// with the present numbers. If the connection ends before the request was sent, the names are looked
// up again for the new connection. So no request reaches a space that was given the number of a
// dropped one.
//
// # Errors
//
// Errors of calls are of type [slipstream.Error], whose Outcome says whether the server may
// have executed the request; [slipstream.OutcomeOf] finds it in any error. An error reply of the
// server is a [ServerError] in its chain. A statement that the server refused changed nothing
// (Refused); a function that failed may have had any effect before (Executed). Requests whose outcome
// is NotSent are retried up to Options.Retries times; those that only read, and those that are
// [ProcedureRequest.Idempotent], also if they were cut off. A request that names no space, and of
// which nothing was sent when its connection ended, is sent on another connection, without a pause,
// unless Options.FailFast is set.
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
// Features that a server lacks are refused by the client with [UnsupportedError], because servers
// ignore parts of requests that they do not know: a transaction would commit each of its
// statements, and each page of a select would be the first.
//
// [iproto]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto
// [iproto.Decimal]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto#Decimal
// [iproto.UUID]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto#UUID
// [iproto.Datetime]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto#Datetime
// [iproto.Interval]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto#Interval
// [slipstream.Error]: https://pkg.go.dev/github.com/slipstream-go/slipstream#Error
// [slipstream.OutcomeOf]: https://pkg.go.dev/github.com/slipstream-go/slipstream#OutcomeOf
package tarantool
