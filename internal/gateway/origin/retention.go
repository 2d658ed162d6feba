package origin

import (
	"fmt"
	"strings"
	"time"
)

// Retention describes what a change table keeps, and which bound limits it.
type Retention struct {
	// Bytes is the size of the table with its index, including rows that are deleted
	// and not vacuumed yet; Kept is the size of the rows that are not deleted,
	// estimated from a sample.
	Bytes, Kept int64
	// Reach is the age of the oldest row: a gateway that was disconnected for longer
	// starts with an empty cache.
	Reach time.Duration
	// Bound is what limits the reach.
	Bound Bound
	// KeepChanges and KeepBytes are the bounds of the configuration.
	KeepChanges time.Duration
	KeepBytes   int64
	// Holders are the transactions, at most one for each effect, that have kept rows
	// for a minute or longer, the one with the worse effect first.
	Holders []Holder
}

// Bound is what decides how far a change table reaches back.
type Bound string

// The bounds.
const (
	BoundTime        Bound = "time"        // rows older than KeepChanges are deleted
	BoundBytes       Bound = "bytes"       // there is no room for younger ones
	BoundTransaction Bound = "transaction" // one in progress, whose rows and all later ones stay
)

// Holder is a transaction, snapshot or slot that keeps rows of the change table.
type Holder struct {
	Kind string // "transaction", "prepared transaction", "snapshot" or "replication slot"
	PID  int64  // of its session, or 0 if it has none
	XID  string // the oldest transaction that is in progress for it
	Name string // the application_name, or that of the prepared transaction or the slot
	Age  time.Duration
	// Deletes: rows of XID and later transactions cannot be deleted. Otherwise they
	// can, and only their space cannot be reused.
	Deletes bool
}

func (h Holder) String() string {
	var parts []string
	if h.PID != 0 {
		parts = append(parts, fmt.Sprintf("pid %d", h.PID))
	}
	return fmt.Sprintf("%s %q (%s)", h.Kind, h.Name, strings.Join(append(parts, "xid "+h.XID, "for "+round(h.Age)), ", "))
}

// Effect names, in a word or two, what the holder prevents.
func (h Holder) Effect() string {
	if h.Deletes {
		return "deletion"
	}
	return "vacuum"
}

// Sentences describe the same for humans.
func (r Retention) Sentences() []string {
	list := []string{fmt.Sprintf("the change table takes %s, of which %s are rows that are not deleted; the oldest is %s old", size(r.Bytes), size(r.Kept), round(r.Reach))}
	cost := func(reach time.Duration) string {
		return "a gateway that is disconnected for longer than " + round(reach) + " starts with an empty cache"
	}
	switch r.Bound {
	case BoundBytes:
		list = append(list, fmt.Sprintf("keep_bytes (%s) bounds it before keep_changes (%s) does: %s", size(r.KeepBytes), round(r.KeepChanges), cost(r.Reach)))
	case BoundTransaction:
		list = append(list, fmt.Sprintf("neither keep_changes (%s) nor keep_bytes (%s) bounds it: rows of a transaction in progress and of later ones are never deleted",
			round(r.KeepChanges), size(r.KeepBytes)))
	default:
		list = append(list, fmt.Sprintf("keep_changes bounds it before keep_bytes (%s) does: %s", size(r.KeepBytes), cost(r.KeepChanges)))
	}
	for _, h := range r.Holders {
		effect := "rows of later transactions are not deleted"
		if !h.Deletes {
			effect = "deleted rows cannot be vacuumed"
		}
		list = append(list, fmt.Sprintf("%s while it lasts: %s", effect, h))
	}
	return list
}

// size formats a number of bytes with the significant digits.
func size(n int64) string {
	if n >= 1<<30 {
		return fmt.Sprintf("%.1f GiB", float64(n)/(1<<30))
	}
	return fmt.Sprintf("%.1f MiB", float64(n)/(1<<20))
}

// round formats a duration with the significant digits.
func round(d time.Duration) string {
	if d >= time.Minute {
		text := d.Round(time.Minute).String()
		return strings.TrimSuffix(text, "0s")
	}
	return d.Round(time.Second).String()
}
