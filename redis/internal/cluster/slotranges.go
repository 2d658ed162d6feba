package cluster

import "github.com/slipstream-go/slipstream/redis/internal/slot"

// parseSlots parses a reply to CLUSTER SLOTS.
func parseSlots(frame []byte) (*view, error) {
	r, err := newReader(SlotRanges, frame)
	if err != nil {
		return nil, err
	}
	t, err := r.first()
	if err != nil {
		return nil, err
	}
	n, err := r.listOf(t, 0, maxRanges, "an array of ranges")
	if err != nil {
		return nil, err
	}
	s := slotsReader{view: &view{command: SlotRanges}, known: make(map[slotNode]int)}
	for i := range n {
		r.in("range", i)
		if err := s.slotRange(r); err != nil {
			return nil, err
		}
	}
	return s.view, nil
}

// slotNode identifies a node of CLUSTER SLOTS. Redis 3 sends no IDs.
type slotNode struct {
	id, endpoint string
	port         int
}

type slotsReader struct {
	*view
	known map[slotNode]int
}

// slotRange reads the first and the last slot, the master, and the replicas.
func (s *slotsReader) slotRange(r *reader) error {
	n, err := r.list(3, 2+maxNodes, "slots and nodes")
	if err != nil {
		return err
	}
	first, err := r.integer(0, slot.Count-1, "a slot")
	if err != nil {
		return err
	}
	last, err := r.integer(0, slot.Count-1, "a slot")
	if err != nil {
		return err
	}
	if err := s.countRange(r, first, last); err != nil {
		return err
	}
	master := -1
	for i := range n - 2 {
		r.within("node", i)
		m, err := readSlotNode(r)
		if err != nil {
			return err
		}
		m.replica, m.master = i > 0, master
		index, err := s.member(r, m)
		if err != nil {
			return err
		}
		if i > 0 {
			continue
		}
		master = index
		if err := s.own(r, first, last, index); err != nil {
			return err
		}
	}
	return nil
}

// member returns the index of a node, which may be in several ranges.
func (s *slotsReader) member(r *reader, m member) (int, error) {
	key := slotNode{m.id, m.endpoint, m.port}
	index, there := s.known[key]
	if !there {
		index, err := s.add(r, m)
		if err == nil {
			s.known[key] = index
		}
		return index, err
	}
	if s.members[index].replica != m.replica {
		return 0, r.wrong("the node "+quoted(m.id)+" in two roles", "each node in one role")
	}
	return index, nil
}

// readSlotNode reads a node: the preferred endpoint, the port, the ID (since Redis 4), and further
// information about its addresses (since Redis 7).
func readSlotNode(r *reader) (m member, err error) {
	m.offset = -1
	n, err := r.list(2, maxFields, "a node")
	if err != nil {
		return m, err
	}
	endpoint, unknown, err := r.endpoint()
	if err != nil {
		return m, err
	}
	if m.port, err = r.port(); err != nil {
		return m, err
	}
	m.tlsPort = m.port // the port that this client should use
	if n >= 3 {
		id, _, err := r.text(maxName, "an ID")
		if err != nil {
			return m, err
		}
		if m.id, err = checkID(r, id); err != nil {
			return m, err
		}
	}
	if n >= 4 {
		err = r.fields("a description", func(name []byte) error {
			switch string(name) {
			case "ip":
				return r.into(&m.ip, maxHost, "an IP address")
			case "hostname":
				return r.into(&m.hostname, maxHost, "a host name")
			case "availability-zone":
				return r.into(&m.zone, maxZone, "a zone")
			}
			return r.skip()
		})
		if err != nil {
			return m, err
		}
	}
	for range n - 4 {
		if err := r.skip(); err != nil {
			return m, err
		}
	}
	m.endpoint = endpointOf(string(endpoint), unknown, m.ip)
	return m, nil
}
