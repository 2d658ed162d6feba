package gateway

import (
	"strconv"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// Metrics of the retention of the change table.
var (
	changeBytes = newMetric("origin_changes_bytes", "Size of the change table in PostgreSQL with its index, including deleted rows that are not vacuumed yet. All metrics slipstream_origin_changes_* are read once a minute, and are 0 for SQLite.")
	changeKept  = newMetric("origin_changes_kept_bytes", "Size of the rows of the change table that are not deleted, estimated from a sample.")
	changeLimit = newMetric("origin_changes_keep_bytes", "Configured maximum size of the rows of the change table.")
	changeReach = newMetric("origin_changes_reach_seconds", "Age of the oldest row of the change table. A gateway that is disconnected for longer starts with an empty cache.")
	changeBound = newMetric("origin_changes_bound", "1 for what limits the reach of the change table: time (keep_changes), bytes (keep_bytes), or a transaction in progress, whose rows and all later ones stay.", "bound")
	changeHeld  = newMetric("origin_changes_held_seconds", "How long the oldest transaction, snapshot or replication slot has kept rows of the change table from being deleted, or deleted rows from being vacuumed. 0 without labels if none is older than a minute.", "effect", "kind", "pid", "xid", "name")
)

// collectRetention collects the metrics of the retention of the change table.
func collectRetention(r *origin.Retention, to sink) {
	if r == nil {
		r = &origin.Retention{}
	}
	to.send(changeBytes, float64(r.Bytes))
	to.send(changeKept, float64(r.Kept))
	to.send(changeLimit, float64(r.KeepBytes))
	to.send(changeReach, r.Reach.Seconds())
	for _, b := range []origin.Bound{origin.BoundTime, origin.BoundBytes, origin.BoundTransaction} {
		to.send(changeBound, truth(r.Bound == b), string(b))
	}
	for _, h := range r.Holders {
		pid := ""
		if h.PID != 0 {
			pid = strconv.FormatInt(h.PID, 10)
		}
		to.send(changeHeld, h.Age.Seconds(), h.Effect(), h.Kind, pid, h.XID, h.Name)
	}
	if len(r.Holders) == 0 {
		to.send(changeHeld, 0, "", "", "", "", "")
	}
}
