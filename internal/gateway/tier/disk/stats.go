package disk

import (
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/cache"
)

// figures count what the tier has done. Readers write hits and misses, the writer the
// others.
type figures struct {
	hits, misses                               atomic.Int64
	batches, written, removed, evicted         atomic.Int64
	failures, rebuilds, bytesWritten           atomic.Int64
	documents, bytes, used, fileSize, lastTook atomic.Int64
}

// Stats is what the tier holds and has done since it was opened.
type Stats struct {
	Documents int64 // records in the file, including those that wait to be swept
	Bytes     int64 // of their keys and records
	Used      int64 // bytes of pages in use
	FileSize  int64 // bytes of the file, which never shrinks automatically
	Budget    int64

	Hits, Misses     int64 // reads of the file
	Batches          int64 // transactions
	Written, Removed int64 // documents written, keys removed
	BytesWritten     int64 // of pages, by the transactions
	Evicted          int64 // documents dropped for lack of room
	Declined         int64 // documents that found no room in the queue or were too large
	Failures         int64 // transactions that failed
	Rebuilds         int64 // times the file was recreated
	LastBatch        time.Duration

	Queued      int64 // documents that wait to be written
	QueuedBytes int64

	// Trouble is why the file cannot be used or written, or "" if it can.
	Trouble string
}

// Figures returns what the tier holds and has done.
func (t *Tier) Figures() Stats {
	f := &t.figures
	docs, _, bytes := t.overlay.backlog()
	s := Stats{
		Documents: f.documents.Load(), Bytes: f.bytes.Load(), Used: f.used.Load(), FileSize: f.fileSize.Load(), Budget: t.opts.Budget,
		Hits: f.hits.Load(), Misses: f.misses.Load(), Batches: f.batches.Load(), Written: f.written.Load(), Removed: f.removed.Load(),
		BytesWritten: f.bytesWritten.Load(), Evicted: f.evicted.Load(), Declined: t.overlay.declined.Load(),
		Failures: f.failures.Load(), Rebuilds: f.rebuilds.Load(), LastBatch: time.Duration(f.lastTook.Load()),
		Queued: int64(docs), QueuedBytes: bytes,
	}
	if why := t.trouble.Load(); why != nil {
		s.Trouble = *why
	}
	return s
}

// Stats implements [cache.Store].
func (t *Tier) Stats() cache.TierStats {
	s := t.Figures()
	return cache.TierStats{Documents: s.Documents, Bytes: s.Used, Budget: s.Budget, Evicted: s.Evicted}
}
