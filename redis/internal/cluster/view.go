package cluster

import (
	"strconv"

	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// Flags is the state of a node as reported by the node itself or by the node that was asked.
type Flags uint16

// The flags of a node.
const (
	// Failed marks a node that the majority of masters cannot reach. A master that failed keeps its
	// slots until a replica has taken them over.
	Failed Flags = 1 << iota
	// MaybeFailed marks a node that the node that was asked cannot reach.
	MaybeFailed
	// Handshake marks a node that is about to join the cluster.
	Handshake
	// NoAddress marks a node whose address is not known to any node.
	NoAddress
	// Loading marks a node that is loading its data.
	Loading
	// Disconnected marks a node to which the node that was asked has no connection.
	Disconnected
)

// member is a node as described by one reply.
type member struct {
	id       string // empty in replies of Redis 3
	endpoint string // the preferred endpoint; if empty, the host that was asked
	ip       string // empty if unknown
	hostname string // empty if there is none
	zone     string
	port     int // 0 if there is none
	tlsPort  int
	replica  bool
	masterID string // of the master of a replica; if empty, see master
	master   int    // index of the master of a replica; if -1, see masterID
	flags    Flags
	offset   int64 // -1 if unknown
	epoch    uint64
}

// view is the cluster as described by one reply.
type view struct {
	command Command
	members []member
	byID    map[string]int     // members with an ID
	owners  [slot.Count]uint16 // index of a member + 1; 0 if there is none
	ranges  int                // seen so far
	moving  []move             // in CLUSTER NODES only
	doubt   string             // why owners may be missing; empty if none is
}

// move is a slot that is being migrated.
type move struct {
	slot      uint16
	importing bool
	self      int    // index of the member that reports it
	peer      string // ID
}

// add adds a member and returns its index.
func (v *view) add(r *reader, m member) (int, error) {
	if len(v.members) == maxNodes {
		return 0, r.wrong("too many nodes", "at most "+strconv.Itoa(maxNodes))
	}
	if m.id != "" {
		if _, there := v.byID[m.id]; there {
			return 0, r.wrong("the node "+quoted(m.id)+" a second time", "each node once")
		}
		if v.byID == nil {
			v.byID = make(map[string]int)
		}
		v.byID[m.id] = len(v.members)
	}
	v.members = append(v.members, m)
	return len(v.members) - 1, nil
}

// countRange checks a range of slots and counts it.
func (v *view) countRange(r *reader, first, last int64) error {
	if first < 0 || last >= slot.Count || first > last {
		return r.wrong("the slots "+strconv.FormatInt(first, 10)+" to "+strconv.FormatInt(last, 10), "slots from 0 to "+strconv.Itoa(slot.Count-1))
	}
	if v.ranges++; v.ranges > maxRanges {
		return r.wrong("too many ranges of slots", "at most "+strconv.Itoa(maxRanges))
	}
	return nil
}

// own gives a range of slots, which has been checked, to a member.
func (v *view) own(r *reader, first, last int64, index int) error {
	for s := first; s <= last; s++ {
		if v.owners[s] != 0 {
			return r.wrong("slot "+strconv.FormatInt(s, 10)+" with a second owner", "one owner of each slot")
		}
		v.owners[s] = uint16(index + 1)
	}
	return nil
}

// checkID checks the ID of a node and returns it.
func checkID(r *reader, id []byte) (string, error) {
	if len(id) == 0 || len(id) > maxName {
		return "", r.wrong("an ID of "+strconv.Itoa(len(id))+" bytes", "1 to "+strconv.Itoa(maxName))
	}
	for _, c := range id {
		if c <= ' ' || c > '~' {
			return "", r.wrong("the ID "+quoted(id), "letters and digits")
		}
	}
	return string(id), nil
}
