// Package cluster is what a client of Redis Cluster knows about the cluster: which nodes there are,
// which node owns each of the 16,384 hash slots, and when to ask for news. It knows no sockets and
// no client. Servers: Redis from 3.0 on and Valkey.
//
//   - [Parse] turns the replies of one node into a [Topology], which is immutable. [Addresses] says
//     which address to dial for what a server announces.
//   - [Map] holds the topology in force as a [Table], which callers read without a lock: one atomic
//     load for the owner of a slot, one store for a MOVED.
//   - [Refresher] decides when the topology is asked for, which nodes are asked, and whose answer
//     is taken.
//   - [ParseRedirect] reads MOVED and ASK; [Advise] says what to do about the other errors.
//   - [Choose] selects a node for a read according to a [Policy].
//
// # Which reply
//
// CLUSTER SHARDS is asked first, because it has everything that a client needs: endpoints, both
// ports, health, replication offsets and zones. It may leave slots without an owner: Redis 7.2 and
// Valkey 7.2 do if the failed master of a shard is listed before the new one, and Redis 8.0 does if
// the only master of a shard has failed. And a shard may have two masters of which the reply does not
// say which one owns the slots. In these cases the same node is asked CLUSTER NODES, too: the owners
// are then those of CLUSTER NODES and the endpoints those of CLUSTER SHARDS. Servers that do not know
// CLUSTER SHARDS are asked CLUSTER NODES, and if that is refused CLUSTER SLOTS, which lists neither
// masters without slots nor failed replicas.
//
// # Old views
//
// A node may have an old view of its cluster: it is cut off, or it has just come back. CLUSTER
// SHARDS and CLUSTER SLOTS do not say how old a view is, so CLUSTER INFO is sent in the same round
// trip. The current epoch in its reply rises with every failover and with every slot that has been
// migrated, and nodes tell it in every message to each other. The rules:
//
//   - A view whose current epoch is lower than that of the view in force is not used, and the next
//     node is asked. The highest config epoch of a reply to CLUSTER NODES is compared in the same way.
//   - A node that says that the cluster is down, as the nodes of a minority do, is believed only if a
//     second node has the same view, or if no node says otherwise.
//   - Where there is no epoch, because CLUSTER INFO is forbidden, a view that differs from the one in
//     force is used only if two of at most three nodes have it, or if only one node answers.
//   - A view without slots does not replace one with slots: the node has left the cluster.
//   - If all answers of three refreshes in a row are older, the cluster was reset, and its view is used.
//   - A MOVED is newer than a reply that was asked for before the MOVED came: the reply does not undo it.
//
// # Addresses
//
// A server tells the client where to connect to, so addresses are checked: see [Addresses].
package cluster

// Slots is the number of hash slots.
const Slots = 16384

// Bounds of what a reply may hold. They are far above what a cluster can be: the specification
// recommends at most 1,000 nodes.
const (
	maxReply  = 16 << 20 // bytes of a frame
	maxNodes  = 4096     // nodes of a reply; also shards
	maxRanges = Slots    // ranges of slots of all nodes together
	maxFields = 64       // fields of a node or shard
	maxName   = 64       // bytes of a node's ID; Redis has 40
	maxHost   = 253      // bytes of a host name
	maxZone   = 256      // bytes of an availability zone
)
