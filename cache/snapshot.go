package cache

import "slices"

// Tx identifies a transaction of the origin that changed data: a PostgreSQL
// xid8, or the number of a row of the change table in SQLite. Numbers grow,
// but a smaller one may become visible after a larger one (PostgreSQL), so only
// a [Snapshot] says what a reader saw.
type Tx uint64

// Snapshot is the set of transactions whose effects a read saw. It is the
// token of a loaded document: exact, free of clocks, and comparable with every
// invalidation of the stream.
//
// The shape is PostgreSQL's pg_snapshot (PostgreSQL manual, table "Snapshot
// Components"). An origin that commits in the order of its numbers, as SQLite
// does, has a Snapshot with XMin == XMax and nothing in progress: see [UpTo].
type Snapshot struct {
	// XMin is the lowest transaction that was still running: all smaller
	// ones are visible (or rolled back).
	XMin Tx
	// XMax is one past the highest completed transaction: nothing at or
	// above it is visible.
	XMax Tx
	// InProgress lists, in ascending order, the transactions in
	// [XMin, XMax) that were still running, and so are not visible.
	InProgress []Tx
}

// UpTo returns the snapshot in which exactly the transactions 1..last are visible.
func UpTo(last Tx) Snapshot { return Snapshot{XMin: last + 1, XMax: last + 1} }

// And returns the snapshot that sees what both see.
func (s Snapshot) And(o Snapshot) Snapshot {
	both := Snapshot{XMin: min(s.XMin, o.XMin), XMax: min(s.XMax, o.XMax)}
	for _, tx := range slices.Concat(s.InProgress, o.InProgress) {
		if tx < both.XMax {
			both.InProgress = append(both.InProgress, tx)
		}
	}
	slices.Sort(both.InProgress)
	both.InProgress = slices.Compact(both.InProgress)
	return both
}

// Sees reports whether the effects of tx were visible to the read.
func (s Snapshot) Sees(tx Tx) bool {
	if tx < s.XMin {
		return true
	}
	if tx >= s.XMax {
		return false
	}
	_, running := slices.BinarySearch(s.InProgress, tx)
	return !running
}
