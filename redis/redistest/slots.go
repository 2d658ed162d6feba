package redistest

import (
	"fmt"
	"strings"

	"github.com/slipstream-go/slipstream/redis"
)

// Slots is the number of slots of a cluster.
const Slots = 16384

// Slot returns the slot of a key or of a shard's channel. If the first pair of braces in the key
// is not empty, only the text in it counts: {a}1 and {a}2 have the slot of a.
func Slot(key string) int {
	if _, tail, ok := strings.Cut(key, "{"); ok {
		if tag, _, ok := strings.Cut(tail, "}"); ok && tag != "" {
			key = tag
		}
	}
	crc := uint16(0) // CRC-16/XMODEM
	for i := range len(key) {
		crc ^= uint16(key[i]) << 8
		for range 8 {
			carry := crc >> 15
			crc = crc<<1 ^ carry*0x1021
		}
	}
	return int(crc % Slots)
}

// The errors of a cluster.
var (
	errNoCluster = &redis.ServerError{Code: "ERR", Message: "This instance has cluster support disabled"}
	errCrossSlot = &redis.ServerError{Code: "CROSSSLOT", Message: "Keys in request don't hash to the same slot"}
	errTryAgain  = &redis.ServerError{Code: "TRYAGAIN", Message: "Multiple keys request during rehashing of slot"}
	errDown      = &redis.ServerError{Code: "CLUSTERDOWN", Message: "The cluster is down"}
)

func errMoved(code string, slot int, to *Node) error {
	return &redis.ServerError{Code: code, Message: fmt.Sprintf("%d %s", slot, to.addr)}
}

// demand describes what a command, or the commands of a transaction, need of a node.
type demand struct {
	keys            []string
	write, channels bool
}

// redirected returns the error with which a node of a cluster answers commands for keys that it
// does not serve, or nil if it executes them. The caller holds server.mu.
func (c *Conn) redirected(commands ...[]string) error {
	if c.server.node == nil {
		return nil
	}
	var d demand
	for _, args := range commands {
		a := own[strings.ToUpper(args[0])].access
		d.keys = append(d.keys, a.keys(args[1:])...)
		d.write, d.channels = d.write || a.write, d.channels || a.channels
	}
	return c.judge(d)
}

// judge decides like Redis 7.0.
func (c *Conn) judge(d demand) error {
	n := c.server.node
	if len(d.keys) == 0 {
		return nil
	}
	slot := Slot(d.keys[0])
	several := false
	for _, key := range d.keys[1:] {
		if Slot(key) != slot {
			return errCrossSlot
		}
		several = several || key != d.keys[0]
	}
	if n.cluster.down {
		return errDown
	}
	owner, target := n.cluster.owners[slot], n.cluster.migrating[slot]
	here := n.shard.master == n
	missing, existing := 0, 0
	if !d.channels {
		for _, key := range d.keys {
			if n.server.space[key] == nil {
				missing++
			} else {
				existing++
			}
		}
	}
	switch {
	case here && owner == n.shard && target != nil && missing > 0:
		if existing > 0 {
			return errTryAgain
		}
		return errMoved("ASK", slot, target.master)
	case here && target == n.shard && c.asking:
		if several && missing > 0 {
			return errTryAgain
		}
		return nil
	case owner == n.shard && (here || (c.readOnly || d.channels) && !d.write):
		return nil
	}
	return errMoved("MOVED", slot, owner.master)
}

// Redirection returns the error, such as MOVED, with which the server of c, if it is a node of a
// cluster, answers a command that changes the keys, or nil if it would execute the command. A
// [Handler] of a command that is not among [Commands] needs it, because only the handler knows
// which of the arguments are keys.
func (c *Conn) Redirection(keys ...string) error {
	c.server.mu.Lock()
	defer c.server.mu.Unlock()
	if c.server.node == nil {
		return nil
	}
	return c.judge(demand{keys: keys, write: true})
}
