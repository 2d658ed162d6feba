package gateway

import (
	"strconv"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// Metrics of what the change table keeps.
var (
	changeBytes = prometheus.NewDesc("slipstream_origin_changes_bytes", "Size of the change table in PostgreSQL with its index, including deleted rows that are not vacuumed yet. All metrics slipstream_origin_changes_* are read once a minute, and are 0 for SQLite.", nil, nil)
	changeKept  = prometheus.NewDesc("slipstream_origin_changes_kept_bytes", "Size of the rows of the change table that are not deleted, estimated from a sample.", nil, nil)
	changeLimit = prometheus.NewDesc("slipstream_origin_changes_keep_bytes", "Configured maximum size of the rows of the change table.", nil, nil)
	changeReach = prometheus.NewDesc("slipstream_origin_changes_reach_seconds", "Age of the oldest row of the change table. A gateway that is cut off for longer starts with an empty cache.", nil, nil)
	changeBound = prometheus.NewDesc("slipstream_origin_changes_bound", "1 for what limits the reach of the change table: time (keep_changes), bytes (keep_bytes), or a transaction in progress, whose rows and all later ones stay.", []string{"bound"}, nil)
	changeHeld  = prometheus.NewDesc("slipstream_origin_changes_held_seconds", "How long the oldest transaction, snapshot or replication slot has kept rows of the change table from being deleted, or deleted rows from being vacuumed. 0 without labels if none is older than a minute.", []string{"effect", "kind", "pid", "xid", "name"}, nil)
)

// collectRetention shows what the change table keeps.
func collectRetention(r *origin.Retention, send sender) {
	if r == nil {
		r = &origin.Retention{}
	}
	send(changeBytes, prometheus.GaugeValue, float64(r.Bytes))
	send(changeKept, prometheus.GaugeValue, float64(r.Kept))
	send(changeLimit, prometheus.GaugeValue, float64(r.KeepBytes))
	send(changeReach, prometheus.GaugeValue, r.Reach.Seconds())
	for _, b := range []origin.Bound{origin.BoundTime, origin.BoundBytes, origin.BoundTransaction} {
		send(changeBound, prometheus.GaugeValue, truth(r.Bound == b), string(b))
	}
	for _, h := range r.Holders {
		pid := ""
		if h.PID != 0 {
			pid = strconv.FormatInt(h.PID, 10)
		}
		send(changeHeld, prometheus.GaugeValue, h.Age.Seconds(), h.Effect(), h.Kind, pid, h.XID, h.Name)
	}
	if len(r.Holders) == 0 {
		send(changeHeld, prometheus.GaugeValue, 0, "", "", "", "", "")
	}
}
