package measure

import (
	"maps"
	"slices"
)

// Engine are a moment's figures of the engine that serves the connections of a frontend.
type Engine struct {
	Backend     string // "epoll" or "goroutines"
	Connections int64  // open, with those that were handed over
	Accepted    uint64 // since the start
	// AcceptErrors counts failures to accept, above all for want of descriptors.
	AcceptErrors uint64
	// Unwritten is how many bytes wait for peers to read, Large what answers of 64 KiB and
	// more have of that; Owed is how many answers are waited for.
	Unwritten, Large, Owed int64
	// Reads and Writes are system calls. Wakes counts how often a loop found something
	// ready, Events how much, Sleeps how often it had to wait for it.
	Reads, Writes, Wakes, Events, Sleeps uint64
	// Postponed counts turns of connections that had more to do than others wait for.
	Postponed uint64
	// Closes counts connections that left the engine, by why.
	Closes map[string]uint64
}

// EachClose calls visit with every reason, in alphabetical order, and how many connections
// left with it.
func (e *Engine) EachClose(visit func(reason string, n uint64)) {
	for _, reason := range slices.Sorted(maps.Keys(e.Closes)) {
		visit(reason, e.Closes[reason])
	}
}

// Budget bounds the memory that the connections of several frontends hold together. Package
// gateway makes the one that its frontends share.
type Budget interface {
	// Over reports whether they hold too much, so that connections are being closed.
	Over() bool
}
