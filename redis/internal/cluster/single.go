package cluster

import (
	"slices"

	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// Announced returns the address to dial for host and port, which the server at asked has announced.
// It is for servers that are not nodes of a cluster, such as those that Redis Sentinel names, and
// follows the same rules.
func (a *Addresses) Announced(asked, host string, port int) (string, error) {
	addr, wrong := a.dial(asked, host, port)
	if wrong == nil && addr == "" {
		wrong = &addressError{"no address", "host:port"}
	}
	if wrong != nil {
		return "", wrong
	}
	return addr, nil
}

// Single returns the topology of a server that owns all slots, and of its replicas. All addresses
// must differ.
func Single(addr string, replicas ...string) *Topology {
	addrs := append([]string{addr}, replicas...)
	slices.Sort(addrs)
	master := slices.Index(addrs, addr)
	t := &Topology{
		Nodes:  make([]Node, len(addrs)),
		Ranges: []Range{{First: 0, Last: slot.Count - 1, Node: master}},
		byAddr: make(map[string]int, len(addrs)),
	}
	for i, at := range addrs {
		t.Nodes[i] = Node{Addr: at, Replica: true, Master: master, Offset: -1}
		t.byAddr[at] = i
	}
	t.Nodes[master].Replica, t.Nodes[master].Master = false, -1
	t.digest()
	return t
}
