package cluster

import "github.com/slipstream-go/slipstream/redis/internal/slot"

// Announced returns the address to dial for host and port, which the server at asked has announced.
// It is for servers that are no nodes of a cluster, such as those that Redis Sentinel names, and
// obeys the same rules.
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

// Single returns the topology of a server that has all slots.
func Single(addr string) *Topology {
	t := &Topology{
		Nodes:  []Node{{Addr: addr, Master: -1, Offset: -1}},
		Ranges: []Range{{First: 0, Last: slot.Count - 1, Node: 0}},
		byAddr: map[string]int{addr: 0},
	}
	t.digest()
	return t
}
