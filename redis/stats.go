package redis

import (
	"time"

	"github.com/slipstream-go/slipstream/internal/pipe"
)

// StatsBuckets is the number of buckets of the histograms in [Stats].
const StatsBuckets = pipe.Buckets

// Stats is what a client has done since it was made, and what it holds now. Its
// figures are of slightly different moments.
type Stats struct {
	// Calls were queued; Replies came for them; Failed ended with their
	// connection; Cancelled were given up because a context or a time-out ended,
	// and NeverWritten are those of them that were never sent; Overloaded were
	// turned away because of Options.MaxCalls or MaxBytes; Repeated were made
	// once more because that was safe.
	Calls, Replies, Failed, Cancelled, NeverWritten, Overloaded, Repeated uint64
	// Writes were made to connections: FlushIdle because nothing was under way,
	// FlushDepth because enough was queued for what was, FlushBytes because of
	// the size of what was queued. Kicks are those that a reply set off.
	Writes, FlushIdle, FlushDepth, FlushBytes, Kicks uint64
	// Yields are writes before which callers that could run were let to add
	// theirs; ShortWrites those that the system did not take whole.
	Yields, ShortWrites uint64
	// Backstop counts writes that nobody but a periodic check would have made.
	// It is 0 unless this package has a fault.
	Backstop uint64
	// BytesOut were sent. Reads were made of connections, Deliveries are groups
	// of replies that were handed out together, SoloReplies were read by the
	// caller that waited for them.
	BytesOut, Reads, Deliveries, SoloReplies uint64
	// Pushes are messages of the server that answer no request.
	Pushes uint64
	// Reconnects are connections that ended, Stalls those of them that were given
	// up because the server was silent, Pings the requests sent to find out.
	Reconnects, Stalls, Pings uint64
	// CompleterPanics of [Client.DoFunc] were contained, SlowCompleters took more
	// than 1 ms; HookPanics of Observer, OnSlow and OnEvent were contained.
	CompleterPanics, SlowCompleters, HookPanics uint64
	// Batch counts writes by their number of calls, Batch[i] those of 2^(i-1) to
	// 2^i-1; WriteSize the same by bytes.
	Batch, WriteSize [StatsBuckets]uint64
	// Queued and Outstanding are the calls not yet sent and not yet answered,
	// HeldBytes what they count for Options.MaxBytes, Connected the connections.
	Queued, Outstanding, Connected int
	HeldBytes                      int64
	// Exclusive are the connections that commands have for themselves.
	Exclusive ExclusiveStats
	// Cache are those of client-side caching.
	Cache CacheStats
	// RoundTrip is the shortest time of the last seconds from request to reply;
	// 0: not known. FlushFactor is how many batches are let under way for it.
	RoundTrip   time.Duration
	FlushFactor int
}

// Stats returns the figures of the client. It may be called as often as once a
// second without being felt.
func (c *Client) Stats() Stats {
	s := c.only.Snapshot()
	stats := Stats{
		Calls: s.Calls, Replies: s.Replies, Failed: s.Failed, Cancelled: s.Cancelled, NeverWritten: s.NeverWritten,
		Overloaded: s.Refused, Repeated: c.retry.Repeated(),
		Writes: s.Writes, FlushIdle: s.FlushIdle, FlushDepth: s.FlushDepth, FlushBytes: s.FlushBytes, Kicks: s.Kicks,
		Yields: s.Yields, ShortWrites: s.ShortWrites, Backstop: s.Backstop,
		BytesOut: s.BytesOut, Reads: s.Reads, Deliveries: s.Deliveries, SoloReplies: s.SoloReplies, Pushes: s.Pushes,
		Reconnects: s.Reconnects, Stalls: s.Stalls, Pings: s.Pings,
		CompleterPanics: s.CompleterPanics, SlowCompleters: s.SlowCompleters, HookPanics: c.hookPanics.Load(),
		Batch: s.Batch, WriteSize: s.WriteSize,
		Queued: s.Queued, Outstanding: s.Outstanding, Connected: s.Connected, HeldBytes: s.HeldBytes,
		RoundTrip: s.RoundTrip, FlushFactor: s.FlushFactor, Exclusive: c.exclusives.stats(),
	}
	if c.cache != nil {
		stats.Cache = c.cache.stats()
	}
	return stats
}
