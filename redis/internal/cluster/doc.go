// Package cluster contains what a Redis Cluster client knows about the cluster: the nodes, the
// owner of each of the 16,384 hash slots, and when to refresh both. It uses neither sockets nor the
// client. It supports Redis 3.0 and later, and Valkey.
//
//   - [Parse] turns the replies of one node into a [Topology], which is immutable. [Addresses] maps
//     the addresses that servers announce to the addresses to dial.
//   - [Map] holds the current topology as a [Table], which callers read without a lock: one atomic
//     load for the owner of a slot, one store for a MOVED.
//   - [Refresher] decides when to query the topology, which nodes to query, and whose answer to
//     use.
//   - [ParseRedirect] parses MOVED and ASK. [Advise] says how to handle errors.
//   - [Choose] selects a node for a read according to a [Policy].
//
// # Which reply
//
// CLUSTER SHARDS is sent first, because its reply contains everything that a client needs:
// endpoints, both ports, health, replication offsets and zones. The reply may leave slots without
// an owner: with Redis 7.2 and Valkey 7.2, if the failed master of a shard is listed before the new
// one, and with Redis 8.0, if the only master of a shard has failed. A shard may also have two
// masters, without an indication of which one owns the slots. In these cases CLUSTER NODES is sent
// to the same node, too. The owners are then taken from CLUSTER NODES and the endpoints from
// CLUSTER SHARDS. Servers that do not know CLUSTER SHARDS get CLUSTER NODES and, if they refuse
// that, CLUSTER SLOTS, whose reply lists neither masters without slots nor failed replicas.
//
// # Old views
//
// A node may have an old view of its cluster, because it is cut off or has just come back. The replies
// to CLUSTER SHARDS and CLUSTER SLOTS do not say how old a view is, so CLUSTER INFO is sent in the same
// round trip. The current epoch in its reply increases with every failover and every migrated slot, and
// nodes include it in every message to each other. The rules:
//
//   - A view with a lower current epoch than the current view is not used, and the next node is asked.
//     The highest config epoch in a reply to CLUSTER NODES is compared in the same way.
//   - The view of a node that reports that the cluster is down, as the nodes of a minority do, is used
//     only if a second node has the same view, or if no node reports anything else.
//   - A view in which fewer slots have owners than in the current view, or fewer than all slots at
//     the start, is used only if a second node has the same view, if no node reports anything else,
//     or if it is the newest view: the node may have forgotten the others.
//   - Without an epoch, because CLUSTER INFO is forbidden, a view that differs from the current one is
//     used only if two of at most three nodes have it, or if only one node answers.
//   - A view without slots does not replace one with slots, because the node has left the cluster.
//   - If all views in three consecutive refreshes are older, the cluster was reset, and the view is used.
//   - A reply does not undo a MOVED that arrived after the query was sent.
//
// # Addresses
//
// Servers tell the client where to connect, so addresses are checked; see [Addresses].
package cluster

import "github.com/slipstream-go/slipstream/redis/internal/slot"

// Bounds of a reply. They are far above the size of a real cluster: the specification recommends at most
// 1,000 nodes.
const (
	maxReply  = 16 << 20   // bytes of a frame
	maxNodes  = 4096       // nodes of a reply; also shards
	maxRanges = slot.Count // ranges of slots of all nodes together
	maxFields = 64         // fields of a node or shard
	maxName   = 64         // bytes of a node's ID; Redis has 40
	maxHost   = 253        // bytes of a host name
	maxZone   = 256        // bytes of an availability zone
)
