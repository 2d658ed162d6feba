package redis

import "strings"

// requestPolicy says which servers of a cluster execute a command: the tip request_policy of
// COMMAND INFO.
type requestPolicy uint8

const (
	// requestOne selects the server that has the keys, or any server if there are no keys.
	requestOne requestPolicy = iota
	// requestAllNodes selects all servers, including replicas.
	requestAllNodes
	// requestAllShards selects the primary of each shard.
	requestAllShards
	// requestMultiShard selects the server of each slot; it gets only the keys in this slot.
	requestMultiShard
	// requestSpecial means that the command itself determines the servers.
	requestSpecial
)

// responsePolicy says how the replies of several servers are merged: the tip response_policy.
type responsePolicy uint8

const (
	// responseJoin joins the replies into one list. If the command has keys, the list has their
	// order.
	responseJoin responsePolicy = iota
	// responseOneSucceeded returns the first reply that is not an error, or an error if all are
	// errors.
	responseOneSucceeded
	// responseAllSucceeded returns any of the replies, or an error if there is one.
	responseAllSucceeded
	// responseSum, responseMin and responseMax return the sum, the minimum or the maximum of
	// numbers.
	responseSum
	responseMin
	responseMax
	// responseAnd and responseOr return 1 if all replies, or any of them, are 1, and otherwise 0.
	// Lists are combined element by element.
	responseAnd
	responseOr
	// responseSpecial means that the command itself determines how replies are merged.
	responseSpecial
)

// iterates reports whether the command returns a cursor, which is meaningless to servers other than
// the one that returned it.
func (in *commandInfo) iterates() bool { return strings.HasSuffix(in.name, "SCAN") }

// readsReplica reports whether the command may be sent to a replica instead of the primary, because
// the server reports it as readonly. A command with [flagLocal] changes nothing either, but its
// reply describes the server that executes it, so it matters which one does.
func (in *commandInfo) readsReplica() bool {
	return in.flags&(flagReadOnly|flagLocal) == flagReadOnly
}
