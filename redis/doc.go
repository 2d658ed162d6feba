// Package redis is a Redis client that pipelines the requests of many goroutines over shared
// connections.
//
//	client, err := redis.Connect(ctx, redis.Options{Addr: "cache:6379"})
//	...
//	defer client.Close()
//	value, found, err := client.Get(ctx, "greeting")
//
// One [Client] serves a whole program. It has one connection unless Options.Sockets says otherwise:
// requests that are made at the same time are sent in one write and their replies arrive in one
// read, which costs the client and the server far less than a connection for each. There is no
// timer and no delay to tune: a single request is sent immediately.
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
// A [Command] is immutable: it may be kept, sent repeatedly, and used by several goroutines. Nearly
// all commands have methods of the same name that return Go values:
//
//	n, err := client.HSet(ctx, "user:1", redis.Field{Name: "age", Value: "42"})
//	names, err := client.ZRange(ctx, "ranking", 0, 9)
//
// Methods that return numbers allocate nothing. Neither do [Client.GetAppend], [Client.HGetAppend],
// [Client.GetRangeAppend] and [Client.MGetAppend], which append to a slice.
//
// [Client.Start] returns a [Future] instead of waiting. [Client.DoFunc] passes the reply to a
// [Completer], on the goroutine that reads the connection. [Client.DoMany] and [Client.DoBatch]
// send many commands together. [Script] and [Library] run code on the server, [Client.Scan] and
// similar methods iterate over keys or elements, [Client.Subscribe] receives messages, and
// [Client.GetCached] and [Client.DoCached] answer from memory as long as nothing has changed.
//
// # How replies are decoded
//
//	*string, *[]byte     strings and numbers, as text; the memory of a []byte is reused
//	*int..., *uint...    integers, strings of decimal digits, and doubles without a fraction
//	*float64, *float32   numbers and strings of them
//	*bool                booleans, 0 and 1, "true" and "false"
//	slices, arrays       arrays and sets; for a map, alternating keys and values
//	maps                 maps, and arrays of keys and values, alternating or in pairs
//	structs              the same, by the tag `redis:"name"` or the name of the field
//	**T                  nil for null, otherwise a T
//	*any                 nil, string, int64, float64, bool, []any, map[string]any,
//	                     *ServerError for an error within a reply
//	*Value               everything, as the server sent it
//
// Types with UnmarshalText or UnmarshalBinary get the text. Slices and maps are nil for null; if
// the destination cannot represent null, the error has [ErrNull] in its chain. A number that does
// not fit is an error and is never truncated. The result is the same with both versions of the
// protocol.
//
// # Errors and retries
//
// Every error that Client returns for a call is a *slipstream.Error and says whether the server may
// have executed the command: NotSent, MaybeExecuted, Refused, Overloaded, Closed or Executed. An
// error reply of the server is a *[ServerError] in its chain. Its codes ASK, BUSY, CLUSTERDOWN,
// DENIED, LOADING, MASTERDOWN, MISCONF, MOVED, NOAUTH, NOPERM, NOREPLICAS, NOSCRIPT, OOM, READONLY,
// TRYAGAIN and UNBLOCKED mean Refused, and all others Executed.
//
// A script or a function can return an error that looks like one of the server, by
// redis.error_reply, and may already have written data. So the outcome of its error is Executed
// whatever its code, unless it is an error that a server returns before it runs a script: a
// redirect for the slot of the script's keys and nothing else, or one of the texts of Redis and
// Valkey for BUSY, CLUSTERDOWN, LOADING, MASTERDOWN, NOAUTH, NOSCRIPT and TRYAGAIN. A script that
// returns exactly such a text after it has written data is run again, so scripts must use different
// texts.
//
// The text of the error of a call starts with the command and the address of the server. Other
// errors, such as those of [Options] or of a future that is used twice, start with "redis: ".
//
// If nothing of a call was sent when its connection ended, it is sent on another connection without
// a pause, unless Options.FailFast is set.
//
// A call is retried, at most Options.Retries times and with growing, jittered pauses, in these
// cases: it was not sent because there was no connection; the server refused it for a temporary
// reason (BUSY, CLUSTERDOWN, LOADING, MASTERDOWN, TRYAGAIN); or it may have been executed, but is
// known to change nothing or is marked by [Command.Idempotent]. Nothing is retried after a context
// has ended, after Overloaded, or, with Options.FailFast, while there is no connection. So INCR is
// never executed twice.
//
// # Commands that cannot share a connection
//
// Commands that block (BLPOP, XREAD with BLOCK, and commands of modules that the server reports as
// blocking) would make all others wait, so each gets a dedicated connection while it runs.
// Canceling one loses no element: see [Client.Do].
//
// Commands that change the state of a connection (WATCH, SELECT, AUTH, CLIENT SETNAME, WAIT) would
// change it for all callers. A [Session] sends them on a dedicated connection. A Client refuses
// them before they are sent, with an error that says why and has [ErrShared] in its chain. The
// database, the user and the client name are set by [Options].
//
// Transactions are sent by [Client.DoTransaction], or by [Client.Watch] if the changes depend on
// values that were read.
//
// # Redis Cluster
//
// [ConnectCluster] returns a Client with the same methods for a cluster:
//
//	client, err := redis.ConnectCluster(ctx, redis.ClusterOptions{Seeds: []string{"node-1:6379", "node-2:6379"}})
//
// Each command is sent to the node that owns the slot of its keys, together with the commands of
// other callers. However a call is made, the client follows MOVED and ASK, waits during a failover
// for at most Options.DialTimeout, and retries the same calls as other clients of this package. So
// commands with one key do not fail while a slot is migrated. The client sends a command again only
// when it knows that the server has not executed it. If one caller has two calls in flight at the
// same time, by [Client.Start], by [Client.DoFunc] or in one batch, their order is not kept if one
// of them is redirected or retried. A call that starts after another one has returned is executed
// after it.
//
// If a master owes replies and is silent for 1 s, the client queries the topology. When the cluster
// reports that the master has failed and was replaced, the client gives up its connections to that
// master without waiting for Options.StallTimeout: reads in flight continue at the new master, and
// other calls end as MaybeExecuted.
//
// If a redirect names an address that the cluster has not listed, the client queries the topology
// again. It connects and sends credentials to that address only if a node lists it. A redirect for
// a slot other than that of the command is not followed.
//
// A table of the commands of Redis 8 says where the keys of a command are. Before any other
// command, such as one of a module, is sent for the first time, the client uses COMMAND INFO to
// find out whether it blocks and where its keys are. Callers of other commands do not notice this.
// If a server does not say where the keys are, as with modules that find them with their own
// function, the client assumes that the first argument is a key, and the server redirects the
// command if that is wrong. Then each call may take two round trips, and in a transaction the keys
// of the other commands decide.
//
//   - Commands with keys in several slots fail with [ErrCrossSlot] before anything is sent: give
//     the keys the same hash tag, as in {user:1}:name. DEL, EXISTS, MGET, TOUCH and UNLINK are
//     split into one command for each slot instead. MSET is split only with
//     ClusterOptions.SplitMSet, because it is not atomic then. If some of these commands fail, the
//     error is a [*BatchError] whose Index is the position of the first key or node that failed;
//     the others may have been executed.
//   - Commands that affect all data or all servers, such as DBSIZE, FLUSHALL, KEYS, SCRIPT LOAD and
//     CONFIG SET, are sent to every master or to every node, according to the request policies of
//     COMMAND INFO, and their replies are combined. Such commands cannot be part of a batch.
//     [Client.Scan] iterates over all masters. INFO and other commands about one server are sent to
//     any node; [Client.Node], [Client.ForEachMaster] and [Client.ForEachNode] choose nodes.
//     [Client.Topology] returns the map of slots that the client uses, and [Client.AskTopology]
//     that of one node.
//   - [Client.DoTransaction] and [Client.Watch] need keys in one slot. A transaction that is
//     redirected because its slot is being migrated is sent again as a whole. Watch starts over
//     when the slot has moved, and fails with ASK while it is moving. A [Session] stays at its
//     node, and its commands fail with MOVED. A blocking command, such as BLPOP, continues at the
//     new node, and its timeout starts over.
//   - Subscriptions to channels and patterns share one connection to any node. Subscriptions to
//     channels of shards ([Topics], SSUBSCRIBE) use the masters of their slots, with one connection
//     for each node; one subscription may have channels in many slots. When a slot moves, or its
//     master is lost, the client subscribes to its channels at the new master, and each of them
//     gets a [Gap] with its name before its next message. Other channels miss nothing. After a
//     failover, a message that was received before the Gap may be received again after it, because
//     the nodes of a shard forward messages to each other.
//   - ClusterOptions.ReadFrom lets replicas execute commands that only read; see [ReadPolicy].
//   - A cluster has one database, so Options.DB must be 0.
//
// # Redis Sentinel
//
// [ConnectSentinel] returns a Client of a master that is monitored by Redis Sentinel:
//
//	client, err := redis.ConnectSentinel(ctx, redis.SentinelOptions{
//		MasterName: "mymaster", Sentinels: []string{"sentinel-1:26379", "sentinel-2:26379"},
//	})
//
// It has the methods and the rules of a Client of a single server: there are no slots. The client
// listens to the messages of one Sentinel, and queries all Sentinels when one announces a failover,
// when the connection to the master is lost, and when a write is refused with READONLY. A server
// becomes the client's master if the Sentinels report it with a higher config epoch than the
// previous master, and if the server itself says that it is a master. So the client does not write
// to an old master that comes back.
//
// In a failover, calls that were not sent or were refused continue at the new master, for which
// they wait at most Options.DialTimeout. Calls in flight end like those of any lost connection:
// only those that may safely be executed twice are sent again. Subscriptions move to the new
// master, with a [Gap]; sessions and commands that block at the old master end. Writes that the old
// master has acknowledged but not yet replicated are lost, as always with Redis. [Client.Scan]
// fails, because a cursor of one server is meaningless to another.
//
// SentinelOptions.ReadFrom lets the replicas that the Sentinels list execute commands with keys that only
// read; see [ReadPolicy]. [Client.Nodes] lists them.
//
// # Contexts and timeouts
//
// The end of a context ends the caller's wait within 10 ms, and nothing else: a request that was
// sent stays in flight, and its reply is discarded. This needs no goroutine and no timer per call.
// If a server owes replies and is silent for Options.StallTimeout, the connection is closed;
// commands known to be slow get more time, see [Command.SlowFor].
//
// # Memory
//
// Calls and bytes in flight are bounded by Options.MaxCalls and MaxBytes. Replies are bounded by
// Options.Limits, which is checked before memory is allocated.
//
// # Observability
//
// [Client.Stats] returns counters, gauges and histograms. Options.Observer is notified of each
// call, with the context of its caller, OnSlow of slow calls, and OnEvent of events of connections.
// None of them gets keys or values. Package slipstreamprom exports all of this to Prometheus, and
// package slipstreamotel exports calls to OpenTelemetry.
//
// The protocol is described at https://redis.io/docs/latest/develop/reference/protocol-spec;
// versions 2 and 3 are supported.
package redis
