package bench

import (
	"fmt"
	"strings"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
)

// RedisReport counts the replies of Redis.
type RedisReport struct {
	Sets    uint64 `json:"sets"`
	Hits    uint64 `json:"get_hits"`
	Misses  uint64 `json:"get_misses"`
	Others  uint64 `json:"others"`           // replies to other commands
	Wrong   uint64 `json:"wrong"`            // GETs that returned the value of another key
	Stale   uint64 `json:"stale"`            // GETs that returned a value that had been replaced before the request
	Foreign uint64 `json:"values_of_others"` // GETs that returned a value of another program, which is not checked
	// Untracked means that stale values were not detected, because there are too many keys.
	Untracked bool `json:"stale_unknown,omitempty"`
}

// TarantoolReport counts the replies of Tarantool.
type TarantoolReport struct {
	Replaces  uint64 `json:"replaces"`
	Hits      uint64 `json:"select_hits"`
	Misses    uint64 `json:"select_misses"`
	Others    uint64 `json:"others"` // replies to call and eval
	Wrong     uint64 `json:"wrong"`  // as in RedisReport, for select
	Stale     uint64 `json:"stale"`
	Foreign   uint64 `json:"values_of_others"`
	Untracked bool   `json:"stale_unknown,omitempty"`
}

// ThriftReport counts the replies of Thrift services.
type ThriftReport struct {
	Replies uint64 `json:"replies"` // without an exception; includes calls of oneway functions, which have no reply
	Wrong   uint64 `json:"wrong"`   // with --echo, those that did not return what was sent
}

// Wrong returns the number of answers that were wrong, stale or duplicates.
func (r *Report) Wrong() (n uint64) {
	if h := r.HTTP; h != nil {
		n += h.Duplicates
	}
	if t := r.Redis; t != nil {
		n += t.Wrong + t.Stale
	}
	if t := r.Tarantool; t != nil {
		n += t.Wrong + t.Stale
	}
	if t := r.Thrift; t != nil {
		n += t.Wrong
	}
	return n
}

// writeReplies writes the counts of replies to our clients, and the figures of each operation of a
// mix.
func (r *Report) writeReplies(b *strings.Builder) {
	var parts []string
	if t := r.Redis; t != nil {
		parts = repliesText("SET", "GET", t.Untracked, clientload.Tally{
			Writes: t.Sets, Hits: t.Hits, Misses: t.Misses, Others: t.Others, Wrong: t.Wrong, Stale: t.Stale, Foreign: t.Foreign,
		})
	}
	if t := r.Tarantool; t != nil {
		parts = repliesText("replace", "select", t.Untracked, clientload.Tally{
			Writes: t.Replaces, Hits: t.Hits, Misses: t.Misses, Others: t.Others, Wrong: t.Wrong, Stale: t.Stale, Foreign: t.Foreign,
		})
	}
	if t := r.Thrift; t != nil {
		parts = []string{grouped(t.Replies) + " without an exception"}
		if t.Wrong > 0 {
			parts = append(parts, grouped(t.Wrong)+" wrong")
		}
	}
	if len(parts) > 0 {
		fmt.Fprintf(b, "%-8s %s\n", "replies", strings.Join(parts, ", "))
	}
	r.writeOperations(b)
}

// repliesText describes the replies to writes and reads.
func repliesText(write, read string, untracked bool, t clientload.Tally) (parts []string) {
	if t.Writes > 0 {
		parts = append(parts, grouped(t.Writes)+" "+write)
	}
	if reads := t.Hits + t.Misses; reads > 0 {
		stale := grouped(t.Stale) + " stale"
		if untracked {
			stale = "stale ones not detected with so many keys"
		}
		parts = append(parts, fmt.Sprintf("%s %s (%s hits, %s of them wrong, %s; %s misses)", grouped(reads), read, grouped(t.Hits), grouped(t.Wrong), stale, grouped(t.Misses)))
	}
	if t.Others > 0 {
		parts = append(parts, grouped(t.Others)+" replies")
	}
	if t.Foreign > 0 {
		parts = append(parts, grouped(t.Foreign)+" values of other programs, not checked")
	}
	return parts
}
