package main

import (
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
)

// A row holds the results of one subject in one scenario.
type row struct {
	Scenario string           `json:"scenario"`
	Subject  string           `json:"subject"`
	About    load.Environment `json:"about"`
	LoadAvg  string           `json:"loadavg"` // of the machine, before and after
	Partial  string           `json:"partial,omitempty"`

	Rate     float64 `json:"rate"` // planned, a second
	Callers  int     `json:"callers"`
	Reached  float64 `json:"reached"` // calls a second
	Requests int     `json:"requests"`
	NotSent  int     `json:"not_sent"`
	Unknown  int     `json:"unknown"`
	Answered int     `json:"server_errors"`
	Missing  int     `json:"missing"` // keys that a server has lost
	Wrong    int     `json:"wrong"`
	Cut      int     `json:"cut"` // in flight at the end
	// Unresolved are calls that did not return although their contexts had ended.
	Unresolved int            `json:"unresolved"`
	Share      float64        `json:"error_share"`
	Errors     map[string]int `json:"errors,omitempty"`

	// Numbers of writes. Lost writes were acknowledged by a master that remained one, and
	// LostByRedis by one that was replaced; neither are on the servers. Denied writes were executed
	// although the error said otherwise. Reordered writes were acknowledged, but come after one
	// that was sent after their acknowledgement.
	Lost        int `json:"lost"`
	LostByRedis int `json:"lost_by_redis"`
	Twice       int `json:"twice"`
	Denied      int `json:"denied"`
	Reordered   int `json:"reordered"`

	FaultMS    float64  `json:"fault_ms"`              // since the first call
	RestoredMS *float64 `json:"restored_ms,omitempty"` // from the fault until the servers serve again
	OverMS     float64  `json:"over_ms"`               // the length of the fault
	// FirstMS and SteadyMS are measured for the affected slots from the moment when the servers
	// serve them again: FirstMS to the first success, and SteadyMS to the end of the last call that
	// failed, was sent before that moment or took more than slowCall.
	FirstMS  *float64 `json:"first_ms,omitempty"`
	SteadyMS *float64 `json:"steady_ms,omitempty"`
	// BeforeP99MS is the 99th percentile for all slots before the fault: what the machine and the
	// clients need without one.
	BeforeP99MS float64 `json:"before_p99_ms"`
	// For the other slots, from the fault until settling after it.
	OthersCalls  int     `json:"others_calls"`
	OthersErrors int     `json:"others_errors"`
	OthersP99MS  float64 `json:"others_p99_ms"`
	OthersMaxMS  float64 `json:"others_max_ms"`

	Topology float64 `json:"topology_per_s"`
	// Unasked counts failovers that do not belong to the scenario: servers that lacked CPU time
	// were considered dead. What Redis then lost counts as Lost.
	Unasked int `json:"unasked_failovers"`
	// LateP99MS and LateMaxMS are how late the generator began calls of idle callers.
	LateP99MS float64 `json:"late_p99_ms"`
	LateMaxMS float64 `json:"late_max_ms"`
}

const (
	// slowCall is the duration from which a call shows that a client has not recovered.
	slowCall = 250 * time.Millisecond
	// settling is how long after the fault the other slots are observed.
	settling = time.Second
)

func millis(d time.Duration) float64 { return float64(d) / float64(time.Millisecond) }

// analyze computes the figures of a row from the ledger.
func (r *row) analyze(l *ledger, t *times, affected func(caller int) bool) {
	r.Requests, r.Unresolved, r.Errors = len(l.Ops), l.Unresolved, l.Errors
	r.FaultMS, r.OverMS = millis(t.fault.Sub(t.began)), millis(t.over.Sub(t.fault))
	var counts [fates]int
	var before, others load.Histogram
	var slowest time.Duration
	watched := t.over.Add(settling)
	var first, last, end time.Time
	for i := range l.Ops {
		o := &l.Ops[i]
		counts[o.Fate]++
		if o.sent().After(end) {
			end = o.sent()
		}
		if o.ended().Before(t.fault) && o.Fate <= missing {
			before.Record(o.Took)
		}
		switch {
		case !affected(int(o.Caller)):
			if o.ended().Before(t.fault) || o.sent().After(watched) || o.Fate == cut {
				continue
			}
			others.Record(o.Took)
			slowest = max(slowest, o.Took)
			if o.failed() {
				r.OthersErrors++
			}
		case !t.restored.IsZero() && !o.ended().Before(t.restored):
			if o.Fate <= missing && (first.IsZero() || o.ended().Before(first)) {
				first = o.ended()
			}
			if (o.failed() || o.sent().Before(t.restored) || o.Took > slowCall) && o.ended().After(last) {
				last = o.ended()
			}
		}
	}
	if d := end.Sub(t.began); d > 0 {
		r.Reached = float64(r.Requests) / d.Seconds()
	}
	r.NotSent, r.Unknown, r.Answered = counts[notSent], counts[unknown], counts[answered]
	r.Missing, r.Wrong, r.Cut = counts[missing], counts[wrong], counts[cut]
	if n := r.Requests - r.Cut; n > 0 {
		r.Share = float64(r.NotSent+r.Unknown+r.Answered) / float64(n)
	}
	r.BeforeP99MS = millis(before.Quantile(0.99))
	r.OthersCalls, r.OthersP99MS, r.OthersMaxMS = int(others.Count()), millis(others.Quantile(0.99)), millis(slowest)
	since := func(at, from time.Time) *float64 {
		ms := millis(at.Sub(from))
		return &ms
	}
	if t.restored.IsZero() {
		return
	}
	r.RestoredMS = since(t.restored, t.fault)
	if !first.IsZero() {
		r.FirstMS = since(first, t.restored)
		if last.Before(first) {
			last = first
		}
		r.SteadyMS = since(last, t.restored)
	}
}

// audit compares the writes with the callers' lists on the servers.
func (r *row) audit(l *ledger, t *times, lists [][]int32) {
	writes := make([][]*op, len(lists)) // by caller and number
	for i := range l.Ops {
		if o := &l.Ops[i]; o.Seq > 0 {
			for len(writes[o.Caller]) <= int(o.Seq) {
				writes[o.Caller] = append(writes[o.Caller], nil)
			}
			writes[o.Caller][o.Seq] = o
		}
	}
	for caller, list := range lists {
		found := make([]int, len(writes[caller]))
		latest := int32(0) // of the acknowledged
		for _, seq := range list {
			if int(seq) >= len(found) || writes[caller][seq] == nil {
				continue // a call that did not return
			}
			if found[seq]++; found[seq] > 1 {
				r.Twice++
				continue
			}
			if writes[caller][seq].Fate == succeeded {
				if seq < latest {
					r.Reordered++
				}
				latest = max(latest, seq)
			}
		}
		for seq, o := range writes[caller] {
			switch {
			case o == nil:
			case o.Fate == succeeded && found[seq] == 0:
				if !t.safe.IsZero() && !o.ended().After(t.safe.Add(slowCall)) && !o.sent().After(t.safe) {
					r.LostByRedis++
				} else {
					r.Lost++
				}
			case (o.Fate == notSent || o.Fate == answered) && found[seq] > 0:
				r.Denied++
			}
		}
	}
}
