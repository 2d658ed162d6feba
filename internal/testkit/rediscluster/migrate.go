package rediscluster

import (
	"fmt"
	"strconv"
	"strings"
	"testing"
)

// A Migration moves a slot from its master to another one, as redis-cli does. Between its steps, a
// test may do anything.
type Migration struct {
	// Immutable.
	cluster  *Cluster
	slot     string
	From, To *Node

	// Replace lets moved keys replace keys that the new master already has, because a client has
	// sent ASKING without having received an ASK error. Otherwise the test fails.
	Replace bool
}

// BeginMigration makes the slot's master migrate it and the other master import it. The former
// replies with ASK to commands on keys that it does not have. No key is moved yet.
func (c *Cluster) BeginMigration(t testing.TB, slot int, to *Node) *Migration {
	t.Helper()
	m := &Migration{cluster: c, slot: strconv.Itoa(slot), From: c.MasterOf(t, slot), To: to}
	m.begin(t)
	return m
}

func (m *Migration) begin(t testing.TB) {
	t.Helper()
	m.To.Do(t, "CLUSTER", "SETSLOT", m.slot, "IMPORTING", m.From.id)
	m.From.Do(t, "CLUSTER", "SETSLOT", m.slot, "MIGRATING", m.To.id)
}

// MoveKeys moves up to n keys and returns how many it has moved.
func (m *Migration) MoveKeys(t testing.TB, n int) int {
	t.Helper()
	keys := words(m.From.Do(t, "CLUSTER", "GETKEYSINSLOT", m.slot, strconv.Itoa(n)))
	m.MoveKey(t, keys...)
	return len(keys)
}

// MoveKey moves the given keys.
func (m *Migration) MoveKey(t testing.TB, keys ...string) {
	t.Helper()
	if len(keys) == 0 {
		return
	}
	command := []string{"MIGRATE", "127.0.0.1", strconv.Itoa(m.To.Port()), "", "0", strconv.FormatInt(replyTimeout.Milliseconds()/2, 10)}
	if m.Replace {
		command = append(command, "REPLACE")
	}
	if m.To.password != "" {
		command = append(command, "AUTH", m.To.password)
	}
	m.From.Do(t, append(append(command, "KEYS"), keys...)...)
}

// Finish moves the remaining keys, gives the slot to its new master, and waits until all nodes
// know.
func (m *Migration) Finish(t testing.TB) {
	t.Helper()
	m.finish(t)
	m.cluster.Settle(t)
}

// finish is like Finish, but does not wait.
func (m *Migration) finish(t testing.TB) {
	t.Helper()
	for {
		for m.MoveKeys(t, 100) > 0 {
		}
		m.give(t, m.To)
		if m.give(t, m.From) {
			return
		}
	}
}

// give tells a node which node owns the slot now. It returns false if there are keys left.
func (m *Migration) give(t testing.TB, n *Node) bool {
	t.Helper()
	_, err := n.Ask("CLUSTER", "SETSLOT", m.slot, "NODE", m.To.id)
	if err != nil && strings.Contains(err.Error(), "while I still hold keys") {
		return false
	}
	if err != nil {
		t.Fatalf("%s: SETSLOT %s NODE: %v\n%s", n, m.slot, err, m.cluster.State())
	}
	return true
}

// Migrate moves slots to a master, each with all steps of a [Migration], and waits until all
// nodes know.
func (c *Cluster) Migrate(t testing.TB, to *Node, slots ...int) {
	t.Helper()
	var from *Node
	var shares sighting
	for _, slot := range slots {
		if from == nil || !shares.owns(slot) {
			from = c.MasterOf(t, slot)
			var err error
			if shares, err = from.self(); err != nil {
				t.Fatal(err)
			}
		}
		if from == to {
			t.Fatal(fmt.Errorf("slot %d is already at %s", slot, to))
		}
		m := &Migration{cluster: c, slot: strconv.Itoa(slot), From: from, To: to}
		m.begin(t)
		m.finish(t)
	}
	c.Settle(t)
}
