package cluster

import (
	"math"

	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// parseShards parses a reply to CLUSTER SHARDS.
func parseShards(frame []byte) (*view, error) {
	r, err := newReader(Shards, frame)
	if err != nil {
		return nil, err
	}
	t, err := r.first()
	if err != nil {
		return nil, err
	}
	n, err := r.listOf(t, 0, maxNodes, "an array of shards")
	if err != nil {
		return nil, err
	}
	v := &view{command: Shards}
	for i := range n {
		r.in("shard", i)
		if err := v.shard(r); err != nil {
			return nil, err
		}
	}
	if v.doubt == "" {
		for _, owner := range v.owners {
			if owner == 0 {
				v.doubt = "a slot without an owner"
				break
			}
		}
	}
	return v, nil
}

// shard reads a shard: the ranges of its slots, and its nodes.
func (v *view) shard(r *reader) error {
	var slots []int64
	first := len(v.members)
	err := r.fields("a shard", func(name []byte) (err error) {
		switch string(name) {
		case "slots":
			slots, err = v.slotPairs(r, slots)
			return err
		case "nodes":
			return v.shardNodes(r)
		}
		return r.skip()
	})
	if err != nil {
		return err
	}
	r.within("", 0)
	owner := v.shardOwner(first)
	if owner < 0 {
		if len(slots) > 0 {
			v.doubt = "a shard without a master that is known to own its slots"
		}
		return nil
	}
	for i := first; i < len(v.members); i++ {
		if m := &v.members[i]; m.replica {
			m.master = owner
		}
	}
	for i := 0; i < len(slots); i += 2 {
		if err := v.own(r, slots[i], slots[i+1], owner); err != nil {
			return err
		}
	}
	return nil
}

// slotPairs reads the first and the last slot of each range.
func (v *view) slotPairs(r *reader, slots []int64) ([]int64, error) {
	n, err := r.list(0, 2*maxRanges, "the first and the last slot of each range")
	if err != nil {
		return nil, err
	}
	if n%2 != 0 {
		return nil, r.wrong("an odd number of slots", "the first and the last slot of each range")
	}
	for range n / 2 {
		first, err := r.integer(0, slot.Count-1, "a slot")
		if err != nil {
			return nil, err
		}
		last, err := r.integer(0, slot.Count-1, "a slot")
		if err != nil {
			return nil, err
		}
		if err := v.countRange(r, first, last); err != nil {
			return nil, err
		}
		slots = append(slots, first, last)
	}
	return slots, nil
}

func (v *view) shardNodes(r *reader) error {
	n, err := r.list(0, maxNodes, "an array of nodes")
	if err != nil {
		return err
	}
	for i := range n {
		r.within("node", i)
		if err := v.shardNode(r); err != nil {
			return err
		}
	}
	return nil
}

func (v *view) shardNode(r *reader) error {
	m := member{offset: -1, master: -1}
	var id, endpoint []byte
	var role, health string
	unknown := false // the endpoint
	err := r.fields("a node", func(name []byte) (err error) {
		switch string(name) {
		case "id":
			id, _, err = r.text(maxName, "an ID")
		case "port":
			m.port, err = r.port()
		case "tls-port":
			m.tlsPort, err = r.port()
		case "ip":
			err = r.into(&m.ip, maxHost, "an IP address")
		case "endpoint":
			endpoint, unknown, err = r.endpoint()
		case "hostname":
			err = r.into(&m.hostname, maxHost, "a host name")
		case "availability-zone":
			err = r.into(&m.zone, maxZone, "a zone")
		case "role":
			err = r.into(&role, maxName, "a role")
		case "health":
			err = r.into(&health, maxName, "a health")
		case "replication-offset":
			m.offset, err = r.integer(math.MinInt64, math.MaxInt64, "an offset")
		default:
			err = r.skip()
		}
		return err
	})
	if err != nil {
		return err
	}
	if m.id, err = checkID(r, id); err != nil {
		return err
	}
	m.endpoint = endpointOf(string(endpoint), unknown, m.ip)
	switch role {
	case "master", "primary":
	case "replica", "slave":
		m.replica = true
	default:
		return r.wrong("the role "+quoted(role), "master or replica")
	}
	switch health {
	case "fail", "failed":
		m.flags |= Failed
	case "loading":
		m.flags |= Loading
	}
	_, err = v.add(r, m)
	return err
}

// endpointOf returns the host at which a server says it can be reached, or "" for the host that was
// asked. A server says "?" if it is configured to announce a host name and has none.
func endpointOf(endpoint string, unknown bool, ip string) string {
	if endpoint == "?" && !unknown {
		return ip
	}
	return endpoint
}

// shardOwner returns the member that owns the slots of the shard whose members start at index
// first: its only master, or its only master that has not failed. It returns -1 if that is not
// known.
func (v *view) shardOwner(first int) int {
	masters, owner := 0, -1
	well, wellOwner := 0, -1
	for i := first; i < len(v.members); i++ {
		m := &v.members[i]
		if m.replica {
			continue
		}
		masters, owner = masters+1, i
		if m.flags&Failed == 0 {
			well, wellOwner = well+1, i
		}
	}
	switch {
	case well == 1:
		return wellOwner
	case well == 0 && masters == 1:
		return owner
	}
	return -1
}
