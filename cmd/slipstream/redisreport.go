package main

import (
	"cmp"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode"
	"unicode/utf8"

	"github.com/slipstream-go/slipstream/redis"
)

// Bounds of a report. Its other lists are bounded by those of the client: 4,096 nodes, and 16,384
// slots.
const (
	maxListed    = 100  // entries of lists that grow with the disagreement of the nodes
	maxSayers    = 8    // nodes that are named as the source of a claim
	maxErrorText = 300  // bytes
	maxWord      = 64   // bytes of versions, zones and so on
	maxKeyText   = 1000 // bytes of a key that is printed
)

const allSlots = 16384

// clusterReport is what slipstream redis cluster prints. Its members in JSON are a part of the
// interface. Text of servers has its control characters escaped.
type clusterReport struct {
	Seed      string         `json:"seed"`
	Topology  topologyReport `json:"topology"`
	Shards    []shardReport  `json:"shards"`
	Nodes     []nodeReport   `json:"nodes"`
	Uncovered []string       `json:"uncovered_slots"` // ranges such as 5-9
	Moving    []movingReport `json:"moving_slots"`    // at most maxListed
	Views     viewsReport    `json:"views"`
	Key       *keyReport     `json:"key,omitempty"`
	Client    []string       `json:"client"` // sentences about what the client does
	Problems  []string       `json:"problems"`

	byAddr map[string]int // index in Nodes
	policy string         // of reads
}

// topologyReport is the source of the client's topology.
type topologyReport struct {
	From   string `json:"from"`
	Source string `json:"source"` // CLUSTER SHARDS, CLUSTER NODES or CLUSTER SLOTS
	Epoch  uint64 `json:"epoch"`
	State  string `json:"state"` // ok or fail
	Slots  int    `json:"slots"` // that have an owner
}

// shardReport is a master and its replicas.
type shardReport struct {
	Master   string   `json:"master"`
	Slots    int      `json:"slots"`
	Ranges   []string `json:"ranges"`
	Replicas []string `json:"replicas"`
}

// nodeReport is a node.
type nodeReport struct {
	Addr    string `json:"addr"`
	ID      string `json:"id"`
	Role    string `json:"role"`             // master or replica, according to the topology of the client
	Master  string `json:"master,omitempty"` // of a replica
	Zone    string `json:"zone,omitempty"`
	Slots   int    `json:"slots"`
	State   string `json:"state"` // ok, failed, unreachable, loading or link down
	Error   string `json:"error,omitempty"`
	Version string `json:"version,omitempty"`
	// Offset is how much of the stream of replication a node has, Lag how much less than its master.
	Offset *int64 `json:"offset,omitempty"`
	Lag    *int64 `json:"lag_bytes,omitempty"`
	// Link is the state of a replica's link to its master.
	Link      string       `json:"link,omitempty"` // up or down
	RoundTrip *tripsReport `json:"round_trip,omitempty"`
	Epoch     uint64       `json:"epoch,omitempty"` // of its view
	Coverage  string       `json:"require_full_coverage,omitempty"`
	ownRole   string       // according to INFO
	failed    bool         // according to the topology of the client
}

// tripsReport are round trips that were measured.
type tripsReport struct {
	Pings  int   `json:"pings"`
	Min    int64 `json:"min_us"`
	Median int64 `json:"median_us"`
	Max    int64 `json:"max_us"`
}

// movingReport is a slot that moves. Migrating and Importing report whether the two nodes know that.
type movingReport struct {
	Slot      int    `json:"slot"`
	From      string `json:"from"`
	To        string `json:"to"`
	Migrating bool   `json:"migrating"`
	Importing bool   `json:"importing"`
}

// keyReport says where commands on a key go.
type keyReport struct {
	Key     string   `json:"key"`
	Slot    int      `json:"slot"`
	Master  string   `json:"master,omitempty"` // empty if the slot has no owner
	Readers []string `json:"readers"`          // nodes of commands that only read
}

// problem adds a sentence to Problems.
func (r *clusterReport) problem(format string, args ...any) {
	if len(r.Problems) == maxListed {
		r.Problems = append(r.Problems, "and more")
	}
	if len(r.Problems) < maxListed {
		r.Problems = append(r.Problems, fmt.Sprintf(format, args...))
	}
}

// node returns the node at an address, or nil.
func (r *clusterReport) node(addr string) *nodeReport {
	i, ok := r.byAddr[addr]
	if !ok {
		return nil
	}
	return &r.Nodes[i]
}

// take fills in the topology of the client.
func (r *clusterReport) take(t redis.Topology) {
	r.Topology = topologyReport{From: t.From, Source: t.Source, Epoch: t.Epoch, State: "ok"}
	if t.Down {
		r.Topology.State = "fail"
	}
	r.byAddr = make(map[string]int, len(t.Nodes))
	for i, n := range t.Nodes {
		node := nodeReport{Addr: n.Addr, ID: n.ID, Role: "master", Master: n.Master, Zone: printable(n.Zone, maxWord), Slots: n.Slots, State: "ok", failed: n.Failed}
		if n.Replica {
			node.Role = "replica"
		}
		r.byAddr[n.Addr] = i
		r.Nodes = append(r.Nodes, node)
	}
	ranges := make(map[string][]string)
	next := 0
	for _, owned := range t.Slots {
		r.uncovered(next, owned.First-1)
		next = owned.Last + 1
		ranges[owned.Node] = append(ranges[owned.Node], slotRange(owned.First, owned.Last))
		r.Topology.Slots += owned.Last - owned.First + 1
	}
	r.uncovered(next, allSlots-1)
	first := make(map[string]int)
	for _, owned := range slices.Backward(t.Slots) {
		first[owned.Node] = owned.First
	}
	for _, n := range r.Nodes {
		if n.Role == "replica" && n.Slots == 0 {
			continue
		}
		shard := shardReport{Master: n.Addr, Slots: n.Slots, Ranges: append([]string{}, ranges[n.Addr]...), Replicas: []string{}}
		for _, other := range r.Nodes {
			if other.Master == n.Addr {
				shard.Replicas = append(shard.Replicas, other.Addr)
			}
		}
		r.Shards = append(r.Shards, shard)
	}
	slices.SortStableFunc(r.Shards, func(a, b shardReport) int {
		if a.Slots == 0 || b.Slots == 0 {
			return cmp.Compare(min(b.Slots, 1), min(a.Slots, 1))
		}
		return cmp.Compare(first[a.Master], first[b.Master])
	})
}

func (r *clusterReport) uncovered(first, last int) {
	if first <= last {
		r.Uncovered = append(r.Uncovered, slotRange(first, last))
	}
}

func slotRange(first, last int) string {
	if first == last {
		return strconv.Itoa(first)
	}
	return strconv.Itoa(first) + "-" + strconv.Itoa(last)
}

// shardOf returns the shard of a slot and its number, from 1, or nil.
func (r *clusterReport) shardOf(slot int) (*shardReport, int) {
	for i := range r.Shards {
		for _, text := range r.Shards[i].Ranges {
			from, to, _ := strings.Cut(text, "-")
			first, _ := strconv.Atoi(from) // as formatted by slotRange
			last, err := strconv.Atoi(to)
			if err != nil {
				last = first
			}
			if first <= slot && slot <= last {
				return &r.Shards[i], i + 1
			}
		}
	}
	return nil, 0
}

// route fills in where commands on a key go.
func (r *clusterReport) route(key string) {
	r.Key = &keyReport{Key: printable(key, maxKeyText), Slot: redis.Slot(key), Readers: []string{}}
	shard, _ := r.shardOf(r.Key.Slot)
	if shard == nil {
		return
	}
	r.Key.Master, r.Key.Readers = shard.Master, r.readers(shard)
}

// readers returns the nodes that may get the reads of a shard.
func (r *clusterReport) readers(shard *shardReport) (readers []string) {
	if r.policy != "master" {
		for _, replica := range shard.Replicas {
			if n := r.node(replica); n != nil && n.State == "ok" {
				readers = append(readers, replica)
			}
		}
	}
	if len(readers) == 0 || r.policy != "replica" {
		readers = append([]string{shard.Master}, readers...)
	}
	return readers
}

// lags compares the offsets of replicas with those of their masters.
func (r *clusterReport) lags() {
	for i := range r.Nodes {
		n := &r.Nodes[i]
		if master := r.node(n.Master); master != nil && master.Offset != nil && n.Offset != nil {
			n.Lag = new(max(*master.Offset-*n.Offset, 0))
		}
	}
}

// trips sorts round trips and returns what is printed about them.
func trips(times []time.Duration) *tripsReport {
	if len(times) == 0 {
		return nil
	}
	slices.Sort(times)
	return &tripsReport{Pings: len(times), Min: times[0].Microseconds(), Median: times[len(times)/2].Microseconds(), Max: times[len(times)-1].Microseconds()}
}

// printable returns at most most bytes of a text that may come from a server, in a form that is safe
// to print: unprintable characters are escaped as in a Go string.
func printable(text string, most int) string {
	var b strings.Builder
	for i, c := range text {
		if b.Len() >= most {
			return b.String() + "..."
		}
		switch {
		case c == utf8.RuneError && !strings.HasPrefix(text[i:], string(utf8.RuneError)):
			fmt.Fprintf(&b, `\x%02x`, text[i])
		case !unicode.IsPrint(c):
			quoted := strconv.QuoteRune(c)
			b.WriteString(quoted[1 : len(quoted)-1])
		default:
			b.WriteRune(c)
		}
	}
	return b.String()
}
