package slipstream

import "time"

// StatsBuckets is the number of buckets of the histograms in [Stats].
const StatsBuckets = 24

// Stats are the counters of the connections of a client since it was created, and their current
// state. The values are not from exactly the same moment.
type Stats struct {
	// Calls counts the calls that were queued, Replies the replies to them, Failed the calls that
	// ended with their connection, and Cancelled those that ended with their context or timeout, of
	// which NeverWritten were never sent. Overloaded counts calls that were rejected because of
	// Options.MaxCalls or MaxBytes, and Repeated the repetitions of calls that failed.
	Calls, Replies, Failed, Cancelled, NeverWritten, Overloaded, Repeated uint64
	// Hedges are second attempts of calls that were slow, HedgesWon those of them that were answered
	// first. Ejections is how often a member of a pool was ejected because calls to it failed.
	// They are 0 for clients without them.
	Hedges, HedgesWon, Ejections uint64
	// Moved is how often a call left a connection that ended before anything of the call was sent,
	// for another one. It is not a repetition.
	Moved uint64
	// Writes counts writes to connections: FlushIdle because nothing was in flight, FlushDepth
	// because enough was queued for what was in flight, FlushBytes because of the size of the queue.
	// Kicks are the writes that a reply triggered.
	Writes, FlushIdle, FlushDepth, FlushBytes, Kicks uint64
	// Yields is how often other runnable callers got to add their requests before a write;
	// ShortWrites are writes that the system took only in part.
	Yields, ShortWrites uint64
	// Backstop counts writes that only a periodic check made. It is 0 unless this module has a bug.
	Backstop uint64
	// BytesOut counts bytes sent, Reads the reads from connections, Deliveries the groups of
	// replies that were delivered together, and SoloReplies the replies that were read by the
	// caller that waited for them.
	BytesOut, Reads, Deliveries, SoloReplies uint64
	// Pushes are messages of the server that answer no request.
	Pushes uint64
	// Reconnects are connections that ended, Stalls those of them that were closed because the
	// server was silent, Pings the requests that were sent to find out.
	Reconnects, Stalls, Pings uint64
	// CompleterPanics are contained panics of completion functions, SlowCompleters are those that
	// took longer than 1 ms; HookPanics are contained panics of Observer, OnSlow and OnEvent.
	CompleterPanics, SlowCompleters, HookPanics uint64
	// Batch counts writes by their number of calls: Batch[i] is for 2^(i-1) to 2^i-1 of them.
	// WriteSize does the same by bytes.
	Batch, WriteSize [StatsBuckets]uint64
	// Queued and Outstanding are the calls not yet sent and not yet answered, HeldBytes is what they
	// count for Options.MaxBytes, Connected is the number of connections. Ejected are the members of a
	// pool that get no calls now because calls to them failed.
	Queued, Outstanding, Connected, Ejected int
	HeldBytes                               int64
	// RoundTrip is the shortest time of the last seconds from a request to its reply, or 0 if it is
	// not known. FlushFactor is how many batches may be in flight because of it.
	RoundTrip   time.Duration
	FlushFactor int
}
