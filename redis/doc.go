// Package redis is a client of Redis that lets the requests of many goroutines
// travel together.
//
//	client, err := redis.Connect(ctx, redis.Options{Addr: "cache:6379"})
//	...
//	defer client.Close()
//	value, found, err := client.Get(ctx, "greeting")
//
// One [Client] serves a whole program. It has one connection unless
// Options.Sockets says otherwise: requests that are made at the same time leave
// in one write and come back in one read, which costs client and server far less
// than a connection each. There is no timer and no delay to tune: a request that
// is alone leaves at once.
//
// # Commands
//
// [Client.Do] sends any command and decodes the reply into a Go value:
//
//	var user struct {
//		Name string `redis:"name"`
//		Age  int    `redis:"age"`
//	}
//	err := client.Do(ctx, &user, redis.Cmd("HGETALL", "user:1"))
//
// A [Command] is immutable: it may be kept, sent again, and used by many
// goroutines. Nearly all commands have methods that are called as they are, and
// return what they return:
//
//	n, err := client.HSet(ctx, "user:1", redis.Field{Name: "age", Value: "42"})
//	names, err := client.ZRange(ctx, "ranking", 0, 9)
//
// Those that return numbers allocate nothing, nor do [Client.GetAppend], [Client.HGetAppend],
// [Client.GetRangeAppend] and [Client.MGetAppend], which take a slice to append to.
//
// [Client.Start] returns a [Future] instead of waiting. [Client.DoFunc] tells a
// [Completer] of the reply, on the goroutine that reads the connection.
// [Client.DoMany] and [Client.DoBatch] send many commands together. [Script] and
// [Library] run code at the server, [Client.Scan] and its kind walk over all of
// something, [Client.Subscribe] receives messages, [Client.GetCached] and [Client.DoCached]
// answer from memory while nothing has changed.
//
// # What is decoded into what
//
//	*string, *[]byte     strings and numbers, as text; the memory of a []byte is used again
//	*int..., *uint...    integers, strings of decimal digits, and doubles without a fraction
//	*float64, *float32   numbers and strings of them
//	*bool                booleans, 0 and 1, "true" and "false"
//	slices, arrays       arrays and sets; of a map its keys and values in turns
//	maps                 maps, and arrays of keys and values in turns or in pairs
//	structs              the same, by the tag `redis:"name"` or the name of the field
//	**T                  nil for null, else a T
//	*any                 nil, string, int64, float64, bool, []any, map[string]any,
//	                     *ServerError for an error within a reply
//	*Value               everything, as the server sent it
//
// Types with UnmarshalText or UnmarshalBinary are given the text. Slices and
// maps are nil for null; where null has no place, the error has [ErrNull] in its
// chain. A number that does not fit is an error, never cut off. The result is
// the same with both versions of the protocol.
//
// # Errors, and what may be sent again
//
// Every error that Client returns for a call is a *slipstream.Error and says
// whether the server may have executed the command: NotSent, MaybeExecuted,
// Refused, Overloaded, Closed or Executed. An error that the server answered
// with is a *[ServerError] in its chain. Its codes ASK, BUSY, CLUSTERDOWN,
// DENIED, LOADING, MASTERDOWN, MISCONF, MOVED, NOAUTH, NOPERM, NOREPLICAS,
// NOSCRIPT, OOM, READONLY and TRYAGAIN mean Refused; a script may have written
// before it met DENIED, MISCONF, NOPERM, NOREPLICAS, OOM or READONLY, so for
// scripts these are Executed, as all other codes are for all commands.
//
// The text of an error of a call starts with the command and the address of the
// server. That of an error without them, such as one of [Options] or of a future
// that is used twice, starts with "redis: ".
//
// A call of which nothing was sent when its connection ended is sent on another
// connection, without a pause, unless Options.FailFast is set.
//
// A call is repeated, at most Options.Retries times and with growing, jittered
// pauses, if it was not sent because there was no connection, if the server
// refused it for a reason that passes (BUSY, CLUSTERDOWN, LOADING, MASTERDOWN,
// TRYAGAIN), and, when it may have been executed, only if it is a command known
// to change nothing or marked by [Command.Idempotent]. Nothing is repeated after
// a context has ended, after Overloaded, or, with Options.FailFast, while there
// is no connection. So INCR is never executed twice.
//
// # What cannot share a connection
//
// Commands that wait at the server (BLPOP, XREAD with BLOCK, and what the server
// itself says of commands of modules) would make all others wait: each has a
// connection of its own for as long as it lasts, and gives it back. Cancelling one
// loses no element: see [Client.Do].
//
// Commands that change the state of a connection (WATCH, SELECT, AUTH, CLIENT
// SETNAME, WAIT) would change it for all: a [Session] sends them, on a connection
// of its own. From a Client they are refused before they are sent, with [ErrShared]
// in the chain of an error that says why. Database, user and client name are set
// by [Options].
//
// Transactions are [Client.DoTransaction], and [Client.Watch] if what is to be done
// depends on what was read.
//
// # Contexts and time-outs
//
// The end of a context ends the caller's wait within 10 ms, and nothing else: a
// request that was sent stays under way and its reply is thrown away. No
// goroutine and no timer is made for it. A server that owes replies and is
// silent for Options.StallTimeout loses the connection; commands known to be
// slow are given longer, see [Command.SlowFor].
//
// # Memory
//
// Calls and bytes under way are bounded by Options.MaxCalls and MaxBytes;
// replies by Options.Limits, which are checked before memory is taken.
//
// # Seeing inside
//
// [Client.Stats] returns counters, gauges and histograms. Options.Observer is
// notified of each call, with the context of its caller, OnSlow of slow calls,
// OnEvent of connections. None of them gets keys or values. Package
// slipstreamprom exports all of it to Prometheus, package slipstreamotel calls to
// OpenTelemetry.
//
// The protocol is described at
// https://redis.io/docs/latest/develop/reference/protocol-spec; versions 2 and 3
// are spoken.
package redis
