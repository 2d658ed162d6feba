package cluster

import (
	"errors"
	"strconv"
)

var (
	// ErrClosed is returned by the methods of a closed [Refresher].
	ErrClosed = errors.New("the client is closed")
	// ErrNoNodes is returned if no known node can be queried for the topology.
	ErrNoNodes = errors.New("no known node can be queried for the topology of the cluster; set seeds")
	// ErrOldView is returned if every node that answered has a view of the cluster that is older than
	// the current one.
	ErrOldView = errors.New("every node that answered has a view of the cluster that is older than the current one")
	// ErrDisagree is returned if no two nodes have the same view of the cluster, and none says how old
	// its view is.
	ErrDisagree = errors.New("the nodes disagree about the owners of slots, and CLUSTER INFO, which would show which view is the newest, is refused")
)

// A ReplyError says why a reply about the cluster, or an address in it, was rejected. The current
// topology remains in force.
type ReplyError struct {
	// Command is the command, such as CLUSTER SHARDS.
	Command string
	// Where is the place in the reply, such as "shard 3, node 1". It is empty for the whole reply.
	Where string
	// Wrong says what the reply contains there, and Expected what it should contain.
	Wrong, Expected string
}

// Error implements error.
func (e *ReplyError) Error() string {
	s := "reply to " + e.Command
	if e.Where != "" {
		s += ", " + e.Where
	}
	return s + ": " + e.Wrong + ", expected " + e.Expected
}

// A RefusedError is an error reply to a command about the cluster.
type RefusedError struct {
	// Command is the command that was refused.
	Command string
	// Text is the error as the server wrote it.
	Text string
}

// Error implements error.
func (e *RefusedError) Error() string { return e.Command + ": " + e.Text }

// quoted returns the start of a string from a server as a Go string literal.
func quoted[T string | []byte](text T) string {
	const enough = 64
	if len(text) > enough {
		return strconv.Quote(string(text[:enough])) + "..."
	}
	return strconv.Quote(string(text))
}
