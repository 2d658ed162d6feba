package redis

import "strings"

// requestPolicy says which servers of a cluster execute a command: the tip request_policy of
// COMMAND INFO.
type requestPolicy uint8

const (
	// requestOne: the server that has the keys. If there are no keys, any server.
	requestOne requestPolicy = iota
	// requestAllNodes: all servers, replicas too.
	requestAllNodes
	// requestAllShards: the primary of each shard.
	requestAllShards
	// requestMultiShard: the server of each slot, with the keys of this slot only.
	requestMultiShard
	// requestSpecial: as the command itself says.
	requestSpecial
)

// responsePolicy says how the replies of several servers are merged: the tip response_policy.
type responsePolicy uint8

const (
	// responseJoin: they become one list. If the command has keys, in the order of the keys.
	responseJoin responsePolicy = iota
	// responseOneSucceeded: the first reply that is not an error; if all are errors, one of
	// them.
	responseOneSucceeded
	// responseAllSucceeded: any of them; if there is an error, that one.
	responseAllSucceeded
	// responseSum, responseMin, responseMax: the sum, the least or the greatest of numbers.
	responseSum
	responseMin
	responseMax
	// responseAnd, responseOr: 1 or 0, which it is for all or for any of them. Of lists, of each
	// of their elements.
	responseAnd
	responseOr
	// responseSpecial: as the command itself says.
	responseSpecial
)

// iterates reports whether the command returns a cursor, which means nothing to another server than the one that
// has returned it.
func (in *commandInfo) iterates() bool { return strings.HasSuffix(in.name, "SCAN") }

// readsReplica reports whether the command may be sent to a replica instead of the primary: the
// server calls it readonly. A command with [flagLocal] changes nothing either, but its reply
// describes the server that executes it, so it matters which one does.
func (in *commandInfo) readsReplica() bool {
	return in.flags&(flagReadOnly|flagLocal) == flagReadOnly
}
