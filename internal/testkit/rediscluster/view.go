package rediscluster

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// sighting is what a node reports about a node, including itself: a line of CLUSTER
// NODES.
type sighting struct {
	id, addr string
	flags    []string
	master   string // its ID; empty if the node is not a replica
	linked   bool
	epoch    int64
	slots    string // ranges such as 0-99, in order
}

// sightings returns all lines of CLUSTER NODES by ID.
func (n *Node) sightings() (map[string]sighting, error) {
	v, err := n.Ask("CLUSTER", "NODES")
	if err != nil {
		return nil, fmt.Errorf("%s: %w", n, err)
	}
	all := make(map[string]sighting)
	for line := range strings.Lines(text(v)) {
		s, err := parseSighting(line)
		if err != nil {
			return nil, fmt.Errorf("%s: %w", n, err)
		}
		all[s.id] = s
	}
	return all, nil
}

func parseSighting(line string) (sighting, error) {
	f := strings.Fields(line)
	if len(f) < 8 {
		return sighting{}, fmt.Errorf("CLUSTER NODES contains the line %q", line)
	}
	addr, _, _ := strings.Cut(f[1], "@")
	epoch, err := strconv.ParseInt(f[6], 10, 64)
	if err != nil {
		return sighting{}, fmt.Errorf("CLUSTER NODES contains the line %q: %w", line, err)
	}
	s := sighting{id: f[0], addr: addr, flags: strings.Split(f[2], ","), linked: f[7] == "connected", epoch: epoch}
	if f[3] != "-" {
		s.master = f[3]
	}
	// Migrating slots are in brackets; only the node itself shows them.
	s.slots = strings.Join(slices.DeleteFunc(f[8:], func(r string) bool { return r[0] == '[' }), " ")
	return s, nil
}

// owns reports whether the slot is in the ranges.
func (s sighting) owns(slot int) bool {
	for r := range strings.FieldsSeq(s.slots) {
		first, last, isRange := strings.Cut(r, "-")
		if !isRange {
			last = first
		}
		from, _ := strconv.Atoi(first) // written by a server
		to, _ := strconv.Atoi(last)
		if from <= slot && slot <= to {
			return true
		}
	}
	return false
}

// healthy reports whether the node is reachable and has no failure flags.
func (s sighting) healthy() bool {
	return s.linked && !slices.ContainsFunc(s.flags, func(f string) bool {
		return f == "fail" || f == "fail?" || f == "handshake" || f == "noaddr"
	})
}

// acquainted returns an error unless each of the nodes knows all others.
func (c *Cluster) acquainted(nodes []*Node) error {
	for _, n := range nodes {
		seen, err := n.sightings()
		if err != nil {
			return err
		}
		for _, other := range nodes {
			if s, known := seen[other.id]; !known || !s.healthy() {
				return fmt.Errorf("%s does not know %s: %v", n, other, s)
			}
		}
	}
	return nil
}

// isReady returns an error unless the node is ready to execute commands.
func isReady(n *Node) error {
	v, err := n.Ask("CLUSTER", "INFO")
	if err != nil {
		return fmt.Errorf("%s: %w", n, err)
	}
	f := fields(text(v))
	if f["cluster_state"] != "ok" || f["cluster_slots_ok"] != strconv.Itoa(Slots) {
		return fmt.Errorf("%s reports cluster_state:%s, cluster_slots_ok:%s", n, f["cluster_state"], f["cluster_slots_ok"])
	}
	return nil
}

// Settle waits until all nodes that run are ready and agree on addresses, roles and slots, and
// their replicas are in sync.
func (c *Cluster) Settle(t testing.TB) {
	t.Helper()
	c.await(t, "the cluster has settled", c.settled)
}

func (c *Cluster) settled() error {
	nodes := c.running()
	own, err := agree(nodes)
	if err != nil {
		return err
	}
	for _, n := range nodes {
		if err := isReady(n); err != nil {
			return err
		}
		if err := inSync(n); err != nil {
			return err
		}
	}
	for _, n := range nodes {
		if err := showsAll(n, own); err != nil {
			return err
		}
	}
	return nil
}

// agree returns what the nodes report about themselves, by ID, and an error unless all of them
// report the same about each other.
func agree(nodes []*Node) (map[string]sighting, error) {
	views, own := make([]map[string]sighting, len(nodes)), make(map[string]sighting)
	for i, n := range nodes {
		var err error
		if views[i], err = n.sightings(); err != nil {
			return nil, err
		}
		own[n.id] = views[i][n.id]
	}
	for _, n := range nodes {
		o, addr := own[n.id], n.announcedAddr()
		for j, other := range nodes {
			s, known := views[j][n.id]
			if !known || !s.healthy() || s.addr != addr || s.master != o.master || s.slots != o.slots {
				return nil, fmt.Errorf("%s reports about %s at %s: %+v, which reports about itself: %+v", other, n, addr, s, o)
			}
		}
	}
	return own, nil
}

// inSync returns an error if the node is a replica without a connection to its master.
func inSync(n *Node) error {
	f, err := n.info("replication")
	if err != nil {
		return fmt.Errorf("%s: %w", n, err)
	}
	if f["role"] == "slave" && f["master_link_status"] != "up" {
		return fmt.Errorf("%s has no connection to its master at port %s", n, f["master_port"])
	}
	return nil
}

// showsAll returns an error unless the node reports to clients that all nodes are online, and lists
// each replica with its master. The former depends on the replica's offset, which the node learns
// some time after the replica is in sync.
func showsAll(n *Node, nodes map[string]sighting) error {
	v, err := n.Ask("CLUSTER", "SHARDS")
	if err != nil {
		return fmt.Errorf("%s: %w", n, err)
	}
	health, shards := make(map[string]string), make(map[string]int)
	for i, shard := range v.Elems {
		for _, e := range member(shard, "nodes").Elems {
			p := pairs(e)
			health[p["id"]], shards[p["id"]] = p["health"], i
		}
	}
	for id, s := range nodes {
		if health[id] != "online" {
			return fmt.Errorf("CLUSTER SHARDS of %s shows %s as %q", n, s.addr, health[id])
		}
		if s.master != "" && shards[id] != shards[s.master] {
			return fmt.Errorf("CLUSTER SHARDS of %s shows %s in another shard than its master", n, s.addr)
		}
	}
	return nil
}

// member returns the value for a name in a flat list of names and values.
func member(v resp.Value, name string) resp.Value {
	for i := 0; i+1 < len(v.Elems); i += 2 {
		if text(v.Elems[i]) == name {
			return v.Elems[i+1]
		}
	}
	return resp.Value{}
}

// self returns what the node reports about itself.
func (n *Node) self() (sighting, error) {
	seen, err := n.sightings()
	return seen[n.id], err
}

// MasterOf returns the master of a slot: the running node that claims the slot or, if several do,
// the one with the latest claim. It fails the test if there is none.
func (c *Cluster) MasterOf(t testing.TB, slot int) *Node {
	t.Helper()
	n := c.masterOf(slot)
	if n == nil {
		t.Fatalf("slot %d has no master\n%s", slot, c.State())
	}
	return n
}

func (c *Cluster) masterOf(slot int) *Node {
	var master *Node
	epoch := int64(-1)
	for _, n := range c.running() {
		if s, err := n.self(); err == nil && s.master == "" && s.owns(slot) && s.epoch > epoch {
			master, epoch = n, s.epoch
		}
	}
	return master
}

// ReplicasOf returns the running replicas of a master.
func (c *Cluster) ReplicasOf(t testing.TB, master *Node) []*Node {
	t.Helper()
	var replicas []*Node
	for _, n := range c.running() {
		s, err := n.self()
		if err != nil {
			t.Fatal(err)
		}
		if s.master == master.id {
			replicas = append(replicas, n)
		}
	}
	return replicas
}
