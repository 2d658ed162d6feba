// Package tarantool is a client for Tarantool that sends the requests of many goroutines in few
// large writes: requests that become ready while replies are in flight are sent together, without
// timers, and without batches in the calling program.
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
// A value to be sent may be nil, a boolean, a number, a string, []byte, [iproto.Decimal],
// [iproto.UUID], [iproto.Datetime], time.Time, [iproto.Interval], a slice, a map, a pointer, a
// struct, which is sent as an array of its exported fields, or an [Appender]. A destination is a
// pointer to any of these, a pointer to an interface, a [Reader], or a [Raw]. A type that
// implements Appender and Reader with package [iproto] needs neither allocations nor reflection. A
// tuple may have more or fewer fields than the struct that it is decoded into.
//
// # Schema
//
// Names of spaces and indexes are looked up in the schema. It is loaded when a name is first used,
// and again for each new connection, which may be to another server, or to the same one after a
// restart. A request is sent on the connection to whose schema its numbers belong, with the version
// of the schema. If the server has another version by then, it refuses the request, which is
// retried with the current numbers. If the connection ends before the request was sent, the names
// are looked up again for the new connection. So no request reaches a space that was given the
// number of a dropped one.
//
// # Errors
//
// Errors of calls are of type [slipstream.Error], whose Outcome says whether the server may have
// executed the request; [slipstream.OutcomeOf] finds it in any error. An error reply of the server
// is a [ServerError] in its chain. A statement that the server refused has changed nothing
// (Refused); a function that failed may have had any effect before that (Executed). Requests whose
// outcome is NotSent are retried up to Options.Retries times. Requests that only read, or that are
// [ProcedureRequest.Idempotent], are also retried if they were cut off. If a request names no
// space, and nothing of it was sent when its connection ended, it is sent on another connection
// without a pause, unless Options.FailFast is set.
//
// # Observability
//
// [Client.Stats] and [Pool.Stats] return counters, gauges and histograms. Options.Observer is
// notified of each request, with the context of its caller, OnSlow of slow requests, and OnEvent of
// events of connections. None of them gets keys or values. Package slipstreamprom exports all of
// this to Prometheus, and package slipstreamotel exports requests to OpenTelemetry.
//
// # Old servers
//
// If a server lacks a feature, the client refuses the request with [UnsupportedError], because
// servers ignore unknown parts of requests: each statement of a transaction would be committed
// separately, and each page of a select would be the first one.
//
// [iproto]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto
// [iproto.Decimal]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto#Decimal
// [iproto.UUID]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto#UUID
// [iproto.Datetime]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto#Datetime
// [iproto.Interval]: https://pkg.go.dev/github.com/slipstream-go/slipstream/tarantool/iproto#Interval
// [slipstream.Error]: https://pkg.go.dev/github.com/slipstream-go/slipstream#Error
// [slipstream.OutcomeOf]: https://pkg.go.dev/github.com/slipstream-go/slipstream#OutcomeOf
package tarantool
