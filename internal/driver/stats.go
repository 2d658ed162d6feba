package driver

import (
	"cmp"
	"reflect"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
)

// Stats returns the statistics of a client that has one engine for its calls.
func Stats(s pipe.Snapshot, repeated, hookPanics uint64) slipstream.Stats {
	return slipstream.Stats{
		Calls: s.Calls, Replies: s.Replies, Failed: s.Failed, Cancelled: s.Cancelled, NeverWritten: s.NeverWritten,
		Overloaded: s.Refused, Repeated: repeated, Moved: s.Moved,
		Writes: s.Writes, FlushIdle: s.FlushIdle, FlushDepth: s.FlushDepth, FlushBytes: s.FlushBytes, Kicks: s.Kicks,
		Yields: s.Yields, ShortWrites: s.ShortWrites, Backstop: s.Backstop,
		BytesOut: s.BytesOut, Reads: s.Reads, Deliveries: s.Deliveries, SoloReplies: s.SoloReplies, Pushes: s.Pushes,
		Reconnects: s.Reconnects, Stalls: s.Stalls, Pings: s.Pings,
		CompleterPanics: s.CompleterPanics, SlowCompleters: s.SlowCompleters, HookPanics: hookPanics,
		Batch: s.Batch, WriteSize: s.WriteSize,
		Queued: s.Queued, Outstanding: s.Outstanding, Connected: s.Connected, HeldBytes: s.HeldBytes,
		RoundTrip: s.RoundTrip, FlushFactor: s.FlushFactor,
	}
}

// AddStats adds the statistics of another client to a sum. The round trip of the sum is the
// shortest known one, and its flush factor is the largest.
func AddStats(sum, s *slipstream.Stats) {
	roundTrip, factor := min(sum.RoundTrip, s.RoundTrip), max(sum.FlushFactor, s.FlushFactor)
	if roundTrip == 0 {
		roundTrip = cmp.Or(sum.RoundTrip, s.RoundTrip)
	}
	add(reflect.ValueOf(sum).Elem(), reflect.ValueOf(s).Elem())
	sum.RoundTrip, sum.FlushFactor = roundTrip, factor
}

// add adds numbers, including those in structs and arrays.
func add(sum, s reflect.Value) {
	switch {
	case sum.CanUint():
		sum.SetUint(sum.Uint() + s.Uint())
	case sum.CanInt():
		sum.SetInt(sum.Int() + s.Int())
	case sum.Kind() == reflect.Struct:
		for i := range sum.NumField() {
			add(sum.Field(i), s.Field(i))
		}
	case sum.Kind() == reflect.Array:
		for i := range sum.Len() {
			add(sum.Index(i), s.Index(i))
		}
	}
}
