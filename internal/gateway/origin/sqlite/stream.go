package sqlite

import (
	"context"
	"errors"
	"fmt"
	"sync/atomic"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// A page, the part of the changes that is in memory at a time, ends at the first
// of these bounds: 10,000 events of 40 bytes are 400 kB, and their keys, which
// may have 64 KiB each (changesAfter), are at most 1 MiB and one key.
const (
	pageEvents   = 10_000
	pageKeyBytes = 1 << 20
)

// trimInterval is how often the stream deletes old rows of the change table.
const trimInterval = time.Minute

// maxBackoff bounds the wait between polls that fail.
const maxBackoff = 2 * time.Second

// Stream polls the change table and drives a cache's invalidations with what it
// finds. Run it in one goroutine. From its first poll on, the origin loads from
// the file that the stream follows and from no other, even after Run has ended; so
// an origin has one stream at a time.
type Stream struct {
	// Immutable after Origin.Stream.
	origin *Origin
	clock  cache.Clock

	// Owned by Run.
	conn        *conn // nil while the database cannot be reached
	sink        origin.Sink
	started     bool          // a first poll has succeeded
	anchor      changeMark    // the newest change that was applied
	dataVersion int64         // of the last complete poll on conn, or 0 if there was none
	complete    time.Duration // when the last complete poll of this history began
	changed     bool          // the current poll has read changes
	store       uint64        // the last store of the cache whose changes are being applied
	resumed     *resumed      // until a complete poll: how the stream went back for it
	nextTrim    time.Time
	events      []cache.Event // of the current page, empty between pages
	flushAt     []int         // per resource: one past its All event in events, 0 if none
	segments    []string
	lastLog     time.Time

	// Atomics: Run writes, Stats reads.
	polls, pollErrors, eventCount, voids, trimmed, lastPoll atomic.Int64

	toFresh *origin.Counter

	// follows is the set of resources that the stream has reported on. Atomic: written by
	// Run.
	follows atomic.Pointer[origin.Set]
}

// changeMark is a row of the change table that both sides of a comparison have
// seen. Its nonce was drawn once, so another history with that id has a
// different one.
type changeMark struct {
	id    int64
	nonce [8]byte
}

// Stream returns the stream of the origin. clock is the cache's.
func (o *Origin) Stream(clock cache.Clock) *Stream {
	return &Stream{origin: o, clock: clock, segments: make([]string, 0, 8), toFresh: origin.NewCounter(bounds)}
}

// Changes implements [origin.Origin].
func (o *Origin) Changes(clock cache.Clock) origin.Stream { return o.Stream(clock) }

var _ origin.Stream = (*Stream)(nil)

// Wake implements [origin.Stream]. The stream polls every 100 ms anyway, which costs as much as
// a request.
func (s *Stream) Wake() {}

// Stats implements [origin.Stream]. ToFresh has a value for each poll that read changes: the
// time from the start of the complete poll before it, which had not seen them, to the moment at
// which they had been applied. No commit of them took longer to be seen by every answer; most
// took less, by half an interval on average.
func (s *Stream) Stats() origin.Stats {
	fresh := s.toFresh.Read()
	fresh.AtMost = true
	return origin.Stats{
		Polls:      s.polls.Load(),
		PollErrors: s.pollErrors.Load(),
		Events:     s.eventCount.Load(),
		Voids:      s.voids.Load(),
		Trimmed:    s.trimmed.Load(),
		LastPoll:   time.Duration(s.lastPoll.Load()),
		ToFresh:    fresh,
	}
}

// Run polls until ctx is done and returns its cause. A poll that fails is retried
// with growing pauses, while the horizon does not move.
func (s *Stream) Run(ctx context.Context, sink origin.Sink) error {
	s.sink = sink
	defer s.disconnect()
	timer := time.NewTimer(0)
	defer timer.Stop()
	backoff := s.origin.cfg.PollInterval
	for {
		select {
		case <-ctx.Done():
			return context.Cause(ctx)
		case <-timer.C:
		}
		wait := s.origin.cfg.PollInterval
		if err := s.poll(ctx); err != nil {
			if ctx.Err() != nil {
				return context.Cause(ctx)
			}
			s.failed(err)
			// A writer holds the lock, and the poll has already waited for it.
			if !errors.Is(err, sqlite3.BUSY) {
				wait = backoff
				backoff = min(2*backoff, max(maxBackoff, s.origin.cfg.PollInterval))
			}
		} else {
			backoff = s.origin.cfg.PollInterval
		}
		timer.Reset(wait)
	}
}

func (s *Stream) failed(err error) {
	s.pollErrors.Add(1)
	// BUSY says that a writer holds the lock; the connection is intact.
	if !errors.Is(err, sqlite3.BUSY) {
		s.disconnect()
	}
	if now := time.Now(); now.Sub(s.lastLog) >= 10*time.Second {
		s.lastLog = now
		s.origin.cfg.Logger.Warn("polling the change table failed; the freshness horizon does not move", "error", err)
	}
}

func (s *Stream) disconnect() {
	if s.conn != nil {
		s.conn.close()
		s.conn = nil
	}
}

// void drops all that was cached; the next poll starts on the present history.
func (s *Stream) void(reason string) {
	s.started = false
	s.resumed = nil   // documents of a store are dropped, too
	s.changed = false // some of the changes read may be of another history
	s.voids.Add(1)
	s.origin.cfg.Logger.Warn("history broke, everything cached is dropped", "reason", reason)
	s.sink.Void(reason)
}

// poll brings the sink up to date and then moves its horizon to the moment at
// which the poll began.
func (s *Stream) poll(ctx context.Context) error {
	sent := s.clock() // first: whatever is committed later is not promised
	began := time.Now()
	if err := s.connect(ctx); err != nil {
		return err
	}
	s.conn.SetInterrupt(ctx)
	s.goBack()
	for {
		more, err := s.page()
		if err != nil {
			return s.origin.wrapError(ctx, "poll", err)
		}
		if !more {
			break
		}
	}
	s.sink.Advance(sent, cache.UpTo(cache.Tx(s.anchor.id)))
	s.checkpoint()
	if s.changed && s.complete != 0 { // otherwise changes from before this process were read
		s.toFresh.Add(s.clock() - s.complete)
	}
	s.changed, s.complete = false, sent
	s.polls.Add(1)
	s.lastPoll.Store(int64(time.Since(began)))
	if began.After(s.nextTrim) {
		s.nextTrim = began.Add(trimInterval)
		s.trim(began)
	}
	return nil
}

// connect makes sure that conn has opened the file that is at the path now.
func (s *Stream) connect(ctx context.Context) error {
	if s.conn != nil {
		moved, err := s.conn.moved()
		if err != nil {
			return s.origin.wrapError(ctx, "poll", err)
		}
		if !moved {
			return nil
		}
		s.disconnect()
		if s.started {
			s.void("the database file was replaced")
		}
	}
	c, err := s.origin.open(ctx)
	if err != nil {
		return err
	}
	s.conn, s.dataVersion = c, 0
	// Before the first page flushes: a load that begins after the flush sees it.
	// It is never reset. The horizon holds for a while after a disconnect, and a
	// load from another file in that time could be shared by callers that trust it;
	// such loads are refused until the stream has opened that file itself.
	s.origin.followed.Store(&c.file)
	if c.readOnly {
		s.origin.cfg.Logger.Warn("the database can only be read: the change table is not trimmed", "path", c.path)
	}
	return nil
}

// page reads one page of changes in one short transaction, ends it, and then
// applies them: so a reader in rollback mode blocks writers only while it reads.
// more says that another page may follow.
func (s *Stream) page() (more bool, err error) {
	c := s.conn
	var p pageRead
	if err := c.read(func() error { return s.readPage(c, &p) }); err != nil {
		return false, err
	}
	if p.unchanged {
		return false, nil
	}
	if p.broken != "" {
		s.void(p.broken)
		// The same page again, now as the first one.
		return true, nil
	}
	unheard := 0 // from this resource on, changes were not observed so far
	if p.schema != nil {
		if before := c.schema; s.started && before != nil && before.version == p.schema.version {
			unheard = len(before.resources) // the tables have not changed: resources were added
		}
		c.setSchema(p.schema)
		s.origin.current.Store(p.schema)
		s.promise(p.schema)
	}
	if !s.started || p.schema != nil || s.resumed != nil {
		// Changes before this stream started, or before the schema changed, may
		// not be in the change table. A new connection has no schema, so this also
		// flushes after every reconnect, and must: connect does not notice a file
		// that was replaced while there was no connection, and a copy may have the
		// anchor's row. Loads rely on this, too; see loadAll.
		for i, r := range c.schema.resources {
			changed := !s.started || p.schema != nil && i >= unheard
			if s.resumed == nil && changed || s.resumed != nil && !s.resumed.keeps(r.Resource.Name, c.schema, changed) {
				s.flush(i, p.newest.id)
			}
		}
		if s.resumed != nil {
			s.resumed.judged = true
		}
	}
	if len(s.events) > 0 {
		s.eventCount.Add(int64(len(s.events)))
		s.sink.Apply(s.events)
		s.forgetPage()
	}
	// Only the newest row of a first page is known, so it flushes.
	s.changed = s.changed || s.started && p.newest.id != s.anchor.id
	s.anchor = p.newest
	s.started = true
	s.follows.Store(c.schema.set)
	if p.full {
		return true, nil
	}
	s.dataVersion = p.dataVersion
	return false, nil
}

func (s *Stream) promise(found *schema) {
	for i, why := range found.promises {
		s.sink.SetPromise(cache.ResourceID(i), why == "", why)
		if why != "" && !found.set.Retired[i] {
			s.origin.cfg.Logger.Warn("freshness cannot be promised", "resource", found.set.Resources[i].Name, "why", why)
		}
	}
}

// pageRead is what one transaction showed.
type pageRead struct {
	unchanged   bool       // no commit since the last complete poll
	broken      string     // why the history is another one
	schema      *schema    // set if it changed
	newest      changeMark // the last row that was read
	full        bool       // more rows may follow
	dataVersion int64
}

// readPage reads inside a transaction and leaves the events in s.events.
func (s *Stream) readPage(c *conn, p *pageRead) (err error) {
	s.forgetPage() // of an attempt that failed
	// data_version differs if and only if another connection has committed
	// since this one last looked, and it is read in this transaction, which
	// began after sent: the same number means the same database. That spares
	// an idle poll four statements.
	if p.dataVersion, err = c.dataVersion(); err != nil {
		return err
	}
	set := s.origin.set.Load()
	if s.started && s.dataVersion != 0 && p.dataVersion == s.dataVersion && c.schema.set == set {
		p.unchanged = true
		return nil
	}
	version, err := c.schemaVersion()
	if err != nil {
		return err
	}
	known := c.schema
	if known == nil || known.version != version || known.set != set {
		found, err := readSchema(c.Conn, version, set)
		if err != nil {
			return err
		}
		found.refuseNewKinds()
		p.schema, known = found, found
	}
	if !known.tracked {
		if s.started && s.anchor.id != 0 {
			p.broken = "the change table is gone"
		}
		return nil
	}
	if !s.started {
		p.newest, err = c.newestMark()
		return err
	}
	if s.anchor.id != 0 {
		nonce, ok, err := c.nonceOf(s.anchor.id)
		if err != nil {
			return err
		}
		if !ok {
			p.broken = fmt.Sprintf("change %d is gone: trimmed before it was read, or another history", s.anchor.id)
			return nil
		}
		if nonce != s.anchor.nonce {
			p.broken = fmt.Sprintf("change %d has another nonce: the database was restored", s.anchor.id)
			return nil
		}
	}
	p.newest = s.anchor
	return s.readChanges(c, known, p)
}

// flush adds the event that drops a whole resource, once per page: otherwise a
// statement that flushes for each of its rows would make the cache sweep for each.
// The greatest transaction represents all of them, because a snapshot that sees it
// sees them all.
func (s *Stream) flush(resource int, tx int64) {
	if n := resource + 1 - len(s.flushAt); n > 0 {
		s.flushAt = append(s.flushAt, make([]int, n)...)
	}
	if at := s.flushAt[resource]; at > 0 {
		s.events[at-1].Tx = cache.Tx(tx)
		return
	}
	s.events = append(s.events, cache.Event{
		Key: cache.Key{Resource: cache.ResourceID(resource)}, Tx: cache.Tx(tx), All: true})
	s.flushAt[resource] = len(s.events)
}

// forgetPage releases the events and the memory of their keys.
func (s *Stream) forgetPage() {
	clear(s.events)
	s.events = s.events[:0]
	clear(s.flushAt)
}

// readChanges turns the rows after the anchor into events.
func (s *Stream) readChanges(c *conn, known *schema, p *pageRead) error {
	stmt, err := c.changesAfter(s.anchor.id, pageEvents)
	if err != nil {
		return err
	}
	rows, keyBytes := 0, 0
	for keyBytes < pageKeyBytes && stmt.Step() {
		rows++
		p.newest = changeMark{id: stmt.ColumnInt64(0), nonce: nonceFrom(stmt, 1)}
		name := stmt.ColumnRawText(2)
		for i := range known.resources {
			r := known.resources[i]
			if r.Resource.Name != string(name) || r.Err != nil {
				continue
			}
			id, v := "", everything
			if stmt.ColumnType(3) == sqlite3.TEXT {
				literals := stmt.ColumnText(3)
				keyBytes += len(literals)
				id, v = changedKey(r.Key, literals, s.segments)
			}
			switch v {
			case oneKey:
				s.events = append(s.events, cache.Event{
					Key: cache.Key{Resource: cache.ResourceID(i), ID: id}, Tx: cache.Tx(p.newest.id)})
			case everything:
				s.flush(i, p.newest.id)
			}
		}
	}
	p.full = rows == pageEvents || keyBytes >= pageKeyBytes
	return errors.Join(stmt.Err(), stmt.Reset())
}

// trim deletes old rows. A failure does not fail the stream: the next attempt is a
// minute later.
func (s *Stream) trim(now time.Time) {
	c := s.conn
	if c.readOnly || c.schema == nil || !c.schema.tracked {
		return
	}
	// Never wait for a writer here: the horizon would wait, too.
	err := c.BusyTimeout(0)
	var n int64
	if err == nil {
		n, err = trim(c.Conn, now, s.origin.cfg.KeepChanges, s.anchor.id)
	}
	err = errors.Join(err, c.BusyTimeout(s.origin.cfg.BusyTimeout))
	s.trimmed.Add(n)
	if err != nil && !errors.Is(err, sqlite3.BUSY) {
		s.origin.cfg.Logger.Warn("the change table could not be trimmed", "error", err)
	}
	if n == trimRows {
		s.nextTrim = now.Add(s.origin.cfg.PollInterval) // there is more
	}
}
