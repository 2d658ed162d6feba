package redis

import (
	"time"

	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

// A ReadPolicy selects the servers, of a cluster or of a master with Sentinels, that execute
// commands that only read. Replicas lag behind their masters, so a read may miss a value that was
// just written, and may return an older value than the previous read. If no replica of a shard can
// be reached, reads use its master. Masters execute all transactions, the commands of sessions, and
// those that return a cursor, such as HSCAN.
type ReadPolicy uint8

const (
	// ReadMaster reads from masters.
	ReadMaster ReadPolicy = iota
	// ReadReplica reads from replicas.
	ReadReplica
	// ReadAny reads from masters and replicas.
	ReadAny
	// ReadNearest reads from the nodes with the shortest round-trip time.
	ReadNearest
	// ReadZone reads from nodes in ClusterOptions.Zone, replicas first. Nodes of Valkey announce their
	// zones. Nodes of Redis do not, so with Redis ReadZone is the same as ReadReplica.
	ReadZone
)

// policies maps read policies to those of package cluster.
var policies = [...]cluster.Policy{
	ReadMaster: cluster.MasterOnly, ReadReplica: cluster.PreferReplica, ReadAny: cluster.AnyNode,
	ReadNearest: cluster.Nearest, ReadZone: cluster.SameZone,
}

// A readChoice is the node that executes the reads of a shard until a point in time. It is immutable.
type readChoice struct {
	node  *node
	until time.Duration // as the time since router.began
}

// readChoiceFor is how long a choice lasts. Meanwhile the reads of a shard go to one node, so that
// they share writes.
const readChoiceFor = 40 * time.Millisecond

// reader returns the node that executes a read on a slot.
func (k *router) reader(slot int32) *node {
	if slot < 0 {
		return k.any()
	}
	member := k.nodes.Table().Route(uint16(slot))
	if member == nil {
		return k.any()
	}
	if len(member.Replicas) == 0 {
		return member.Peer
	}
	now := time.Since(k.began)
	if choice := member.Peer.reads.Load(); choice != nil && now < choice.until {
		return choice.node
	}
	n := k.chooseReader(member, now)
	member.Peer.reads.Store(&readChoice{node: n, until: now + readChoiceFor})
	return n
}

// chooseReader selects a node among a master and its replicas.
func (k *router) chooseReader(master *cluster.Member[*node], now time.Duration) *node {
	members := append([]*cluster.Member[*node]{master}, master.Replicas...)
	candidates := make([]cluster.Candidate, len(members))
	for i, member := range members {
		candidates[i] = cluster.Candidate{Master: i == 0, Health: member.Node.Health(), Zone: member.Node.Zone}
		up, _ := member.Peer.engine.Up()
		if up == 0 {
			candidates[i].Health = max(candidates[i].Health, cluster.Doubtful)
		}
		if k.policy == cluster.Nearest {
			candidates[i].RoundTrip = member.Peer.engine.Snapshot().RoundTrip
		}
	}
	if i := cluster.Choose(k.policy, candidates, k.zone, cluster.Seed(k.random, now)); i >= 0 {
		return members[i].Peer
	}
	return master.Peer
}
