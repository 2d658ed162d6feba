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
// than a connection each. There is no timer and no delay to tune: a single
// request is sent immediately.
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
//	slices, arrays       arrays and sets; for a map, alternating keys and values
//	maps                 maps, and arrays of keys and values, alternating or in pairs
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
// NOSCRIPT, OOM, READONLY, TRYAGAIN and UNBLOCKED mean Refused, and all others
// Executed.
//
// A script or a function can answer with an error that looks like one of the
// server, by redis.error_reply, and may have written before. So its error is
// Executed whatever its code, unless it is what a server writes before it runs
// a script: a redirect for the slot of the keys of the script and nothing else,
// or one of the texts that Redis and Valkey have for BUSY, CLUSTERDOWN, LOADING,
// MASTERDOWN, NOAUTH, NOSCRIPT and TRYAGAIN. A script that replies with exactly
// such a text after it has written is run again, so it must use different texts.
//
// The text of an error of a call starts with the command and the address of the
// server. That of an error without them, such as one of [Options] or of a future
// that is used twice, starts with "redis: ".
//
// A call of which nothing was sent when its connection ended is sent on another
// connection, without a pause, unless Options.FailFast is set.
//
// A call is retried, at most Options.Retries times and with growing, jittered
// pauses, if it was not sent because there was no connection, if the server refused
// it for a temporary reason (BUSY, CLUSTERDOWN, LOADING, MASTERDOWN, TRYAGAIN),
// and, when it may have been executed, only if it is a command known to change
// nothing or marked by [Command.Idempotent]. Nothing is retried after a context has
// ended, after Overloaded, or, with Options.FailFast, while there is no connection.
// So INCR is never executed twice.
//
// # What cannot share a connection
//
// Commands that wait at the server (BLPOP, XREAD with BLOCK, and those of modules
// that the server reports as blocking) would make all others wait: each gets a
// dedicated connection for as long as it lasts. Canceling one loses no element: see
// [Client.Do].
//
// Commands that change the state of a connection (WATCH, SELECT, AUTH, CLIENT
// SETNAME, WAIT) would change it for all callers: a [Session] sends them, on a
// dedicated connection. From a Client they are refused before they are sent, with
// [ErrShared] in the chain of an error that says why. Database, user and client name
// are set by [Options].
//
// Transactions are [Client.DoTransaction], and [Client.Watch] if the changes depend on
// what was read.
//
// # Redis Cluster
//
// [ConnectCluster] returns a Client with the same methods for a cluster:
//
//	client, err := redis.ConnectCluster(ctx, redis.ClusterOptions{Seeds: []string{"node-1:6379", "node-2:6379"}})
//
// Each command is sent to the node that owns the slot of its keys, together with those of other
// callers. In every style of calls the client follows MOVED and ASK, waits while a failover is under
// way, at most for Options.DialTimeout, and retries what other clients of this package retry. So the
// migration of a slot is no error for commands of one key. What the client sends again, it sends when
// it has learned that the server has not executed it; the order of two calls of one caller that are in
// flight at the same time, by [Client.Start], [Client.DoFunc] or as commands of one batch, is not kept
// when one of them is redirected or retried. A call that begins after another one has returned is
// executed after it.
//
// A master that owes replies and is silent for 1 s makes the client ask for the topology. When the
// cluster says that the master has failed and was replaced, the client gives it up without waiting for
// Options.StallTimeout: reads in flight continue at the new master, and other calls end as
// MaybeExecuted.
//
// A redirect to an address that the cluster has not listed makes the client ask for the topology
// again; only if a node lists the address does it get a connection and credentials. A redirect for
// another slot than that of the command is not followed.
//
// Where the keys of a command are is in a table of the commands of Redis 8. Before any other command,
// such as one of a module, is sent for the first time, the client uses COMMAND INFO to find out
// whether it blocks and where its keys are. Callers of other commands do not notice. If a server does
// not say where the keys are, as with modules that find them with their own function, the first
// argument is taken for the key, and the server redirects the command if it is not; then each call may
// take two round trips, and in a transaction the keys of the other commands decide.
//
//   - Commands with keys of several slots fail with [ErrCrossSlot] before anything is sent: give the
//     keys one hash tag, as in {user:1}:name. DEL, EXISTS, MGET, TOUCH and UNLINK are cut into one
//     command for each slot instead, MSET only with ClusterOptions.SplitMSet because it is not atomic
//     then. If some of these commands fail, the error is a [*BatchError] whose Index is the position
//     of the first key or node that failed; the others may have been executed.
//   - Commands about all data or all servers, such as DBSIZE, FLUSHALL, KEYS, SCRIPT LOAD and CONFIG
//     SET, are sent to every master or to every node, as the request policies of COMMAND INFO say,
//     and their replies are joined. Such commands cannot be part of a batch. [Client.Scan] walks over
//     all masters. INFO and other commands about one server are sent to any node; [Client.Node],
//     [Client.ForEachMaster] and [Client.ForEachNode] choose nodes. [Client.Topology] is the map of
//     slots that the client uses, [Client.AskTopology] that of one node.
//   - [Client.DoTransaction] and [Client.Watch] need keys of one slot. A transaction that meets a
//     migration is sent again as a whole. Watch starts over when the slot has moved, and fails with
//     ASK while it moves; a [Session] stays at its node, and MOVED is an error of its commands. A
//     command that waits, such as BLPOP, continues at the new node, and its timeout starts over.
//   - Subscriptions to channels and patterns share one connection, to any node. Channels of shards
//     ([Topics], SSUBSCRIBE) are subscribed to at the masters of their slots, over one connection for
//     each node; one subscription may have channels of many slots. When a slot moves, or its master is
//     lost, its channels are subscribed to at the new master, and each has a [Gap] with its name before
//     its next message. Other channels miss nothing. After a failover, a message that came before the
//     Gap may come again after it, because the nodes of a shard pass messages on to each other.
//   - ClusterOptions.ReadFrom lets replicas execute commands that only read; see [ReadPolicy].
//   - A cluster has one database, so Options.DB must be 0.
//
// # Redis Sentinel
//
// [ConnectSentinel] returns a Client of the master that Redis Sentinel watches:
//
//	client, err := redis.ConnectSentinel(ctx, redis.SentinelOptions{
//		MasterName: "mymaster", Sentinels: []string{"sentinel-1:26379", "sentinel-2:26379"},
//	})
//
// It has the methods and the rules of a Client of one server: there are no slots. The client listens
// to what a Sentinel publishes, and asks all of them when a Sentinel announces a failover, when the
// connection to the master is lost, and when a write is refused with READONLY. A server becomes the
// master of the client if the Sentinels name it with a higher config epoch than the one before, and
// if the server itself says that it is a master. So an old master that comes back is not written to.
//
// In a failover, calls that were not sent or were refused continue at the new master, and wait for it
// at most for Options.DialTimeout. Calls in flight end as those of any connection that is lost: only
// those that may safely be executed twice are sent again. Subscriptions move to the new master, with a
// [Gap]; a [Session] ends, and so do commands that wait at the old master. What the old master has
// acknowledged and not yet replicated is lost, as always with Redis. [Client.Scan] fails, because the
// cursor of one server means nothing to another.
//
// SentinelOptions.ReadFrom lets the replicas that the Sentinels list execute commands with keys that only
// read; see [ReadPolicy]. [Client.Nodes] lists them.
//
// # Contexts and timeouts
//
// The end of a context ends the caller's wait within 10 ms, and nothing else: a
// request that was sent stays in flight and its reply is discarded. No goroutine
// and no timer is made for it. A server that owes replies and is silent for
// Options.StallTimeout loses the connection; commands known to be slow are given
// longer, see [Command.SlowFor].
//
// # Memory
//
// Calls and bytes in flight are bounded by Options.MaxCalls and MaxBytes; replies
// by Options.Limits, which are checked before memory is allocated.
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
