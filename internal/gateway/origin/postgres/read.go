package postgres

import (
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/cache"
)

// errSurvey requests a survey of the catalogs.
var errSurvey = errors.New("the schema or the history may have changed")

// readOn applies the changes that became visible since the last poll, and with
// check also verifies that the schema is still the one for which the resources were
// compiled; the horizon only moves if it is. intact is false if the catalogs must
// be read.
//
// One round trip is enough if nothing has to be derived. Derivations need the snapshot
// that showed the changes, and so a transaction. A stream that had some in its last
// poll begins with the transaction, otherwise it reads the changes again in one.
func (s *Stream) readOn(ctx context.Context, sent time.Duration, check bool) (intact bool, err error) {
	if s.statement == "" {
		// There is no change table: there are no changes to read, but it may be created.
		// The horizon moves, which does not matter to resources whose promise is lost.
		if !check {
			return true, nil
		}
		batch := &pgx.Batch{}
		s.queueCheck(batch)
		return s.verified(s.conn.SendBatch(ctx, batch), sent)
	}
	s.muteTroubled(time.Now())
	defer s.reader.forget()
	intact, err = s.readMode(ctx, sent, check)
	if unreadable(err) && !s.reader.raw {
		// A writer has recorded bytes that are not text in the client's encoding.
		s.reader.raw = true
		s.reader.forget()
		intact, err = s.readMode(ctx, sent, check)
		s.reader.raw = false
	}
	if err != nil {
		return s.readError(err)
	}
	return intact, nil
}

func (s *Stream) readMode(ctx context.Context, sent time.Duration, check bool) (intact bool, err error) {
	if !s.expects {
		intact, err := s.readPlain(ctx, sent, check)
		if err != nil || s.reader.linked == 0 {
			return intact, err
		}
		s.reader.forget()
	}
	return s.readDeriving(ctx, sent, check)
}

// unreadable reports whether the server could not send a text in the client's encoding.
func unreadable(err error) bool {
	pgErr, isServer := errors.AsType[*pgconn.PgError](err)
	return isServer && (pgErr.Code == "22021" || pgErr.Code == "22P05") // character_not_in_repertoire, untranslatable_character
}

// queueChanges queues the statements that read the changes, and returns how many there
// are before the last.
func (s *Stream) queueChanges(batch *pgx.Batch) (before int) {
	batch.Queue(pinSQL)
	statement := s.statement
	if s.reader.raw {
		statement = changesStatement(true)
	}
	batch.Queue(statement, append(changesArguments(s.last, s.witness), s.reader.names)...)
	return 1
}

// queueCheck queues the statements that verify the schema. They follow the
// changes: if nothing differs now, nothing differed then.
func (s *Stream) queueCheck(batch *pgx.Batch) {
	batch.Queue(pinSQL)
	batch.Queue(digestSQL, s.watch.arguments()...)
}

// readPlain is a poll without derivations: if reader.linked says that there is something to
// derive, nothing was accepted.
func (s *Stream) readPlain(ctx context.Context, sent time.Duration, check bool) (intact bool, err error) {
	batch := &pgx.Batch{}
	before := s.queueChanges(batch)
	if check {
		s.queueCheck(batch)
	}
	results := s.conn.SendBatch(ctx, batch)
	defer results.Close()
	head, err := s.readHead(results, before, false)
	if err != nil || s.reader.linked > 0 {
		return false, err
	}
	if head.rows <= maxChanges {
		s.accept(head, sent)
		return s.finish(results, sent, check)
	}
	// The documents concerned are dropped before the horizon moves.
	if !check {
		if err := results.Close(); err != nil {
			return false, err
		}
		s.flushChanged(ctx, head)
		s.accept(head, sent)
		return true, nil
	}
	digests, err := s.readDigests(results)
	if err != nil {
		return false, err
	}
	s.flushChanged(ctx, head)
	s.accept(head, sent)
	return s.judged(digests, sent), nil
}

// readDeriving is a poll in a transaction.
//
// To its snapshot, a table that is rewritten or truncated later looks empty. The check takes
// its own snapshot, after the transaction, and finds that such a table has changed, before the
// horizon moves.
func (s *Stream) readDeriving(ctx context.Context, sent time.Duration, check bool) (intact bool, err error) {
	conn := s.conn
	defer func() {
		if !conn.IsClosed() && conn.PgConn().TxStatus() != 'I' {
			_, _ = conn.Exec(ctx, "ROLLBACK") // if it fails, so will the next poll
		}
	}()
	batch := &pgx.Batch{}
	batch.Queue("BEGIN ISOLATION LEVEL REPEATABLE READ")
	before := 1 + s.queueChanges(batch)
	s.queuePatience(batch, noLockWait, s.derivationLimit())
	results := s.conn.SendBatch(ctx, batch)
	defer results.Close()
	head, err := s.readHead(results, before, true)
	if err != nil {
		return false, err
	}
	if err := results.Close(); err != nil {
		return false, err
	}
	switch {
	case head.rows > maxChanges:
		s.flushChanged(ctx, head)
	case s.reader.linked > 0:
		if err := s.derive(ctx); err != nil {
			return false, err
		}
	}
	s.expects = s.reader.linked > 0
	batch = &pgx.Batch{}
	batch.Queue("COMMIT")
	if check {
		s.queueCheck(batch)
	}
	results = s.conn.SendBatch(ctx, batch)
	defer results.Close()
	if _, err := results.Exec(); err != nil {
		return false, err
	}
	s.accept(head, sent)
	return s.finish(results, sent, check)
}

// readHead reads the answers up to the changes, and applies those that need no derivation.
// Unless the poll derives, it stops applying at the first one that needs a derivation: then
// the changes are read again.
func (s *Stream) readHead(results pgx.BatchResults, before int, derives bool) (head pollHead, err error) {
	for range before {
		if _, err := results.Exec(); err != nil {
			return head, err
		}
	}
	rows, err := results.Query()
	if err != nil {
		return head, err
	}
	return readChanges(rows, s.reader, s.judge, func(events []cache.Event) {
		if derives || s.reader.linked == 0 {
			s.apply(events)
		}
	})
}

// accept records a poll, all of whose changes were applied, as the last one.
func (s *Stream) accept(head pollHead, sent time.Duration) {
	if s.trimmedUnread(head) {
		s.origin.cfg.Logger.Warn("changes were trimmed before they were read; all resources are flushed", "complete_from", head.floor, "known_from", s.last.XMin)
		s.flushAll()
	}
	s.last, s.floor = head.snapshot, head.floor
	if head.newest.Tx > s.witness.Tx {
		s.witness = head.newest
	}
	if !s.resumed { // earlier changes are not a delay of this process
		for _, age := range s.reader.ages {
			s.toFresh.Add(age)
		}
	}
	s.resumed = false
	s.regain(s.origin.schema.Load())
	s.compareClocks(sent, head.clock)
}

// flushChanged drops the documents of the resources that have changed, if there are
// more changes than a poll applies. If it takes too long to determine them, it drops
// all documents.
func (s *Stream) flushChanged(ctx context.Context, head pollHead) {
	log := s.origin.cfg.Logger
	names, err := s.changedSources(ctx)
	if err != nil {
		log.Warn("there are too many changes to read, and no time to find their sources; all resources are flushed", "changes", head.rows, "error", err)
		s.flushAll()
		return
	}
	flush := make(map[int]bool)
	for _, name := range names {
		for _, l := range s.reader.listeners[name] {
			flush[l.resource] = true
		}
	}
	for i := range flush {
		log.Warn("there are too many changes to read; the resource is flushed", "resource", s.origin.schema.Load().set.Resources[i].Name, "changes", head.rows)
		s.flush(i)
	}
}

// changedSources returns the sources that have rows which the last poll did not see.
func (s *Stream) changedSources(ctx context.Context) ([]string, error) {
	batch := &pgx.Batch{}
	batch.Queue("SELECT pg_catalog.set_config('search_path', '"+pinnedPath+"', true), pg_catalog.set_config('statement_timeout', $1::pg_catalog.text, true)",
		milliseconds(max(pollTimeout/2, s.derivationLimit())))
	arguments := changesArguments(s.last, cache.Witness{})[:2]
	batch.Queue(sourcesSQL, append(arguments, s.reader.names)...)
	results := s.conn.SendBatch(ctx, batch)
	defer results.Close()
	if _, err := results.Exec(); err != nil {
		return nil, err
	}
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	return pgx.CollectRows(rows, pgx.RowTo[string])
}

// finish ends a poll whose changes were accepted.
func (s *Stream) finish(results pgx.BatchResults, sent time.Duration, check bool) (intact bool, err error) {
	if !check {
		return true, results.Close()
	}
	return s.verified(results, sent)
}

// verified reads the answer of the check, and moves the horizon if nothing differs.
func (s *Stream) verified(results pgx.BatchResults, sent time.Duration) (intact bool, err error) {
	digests, err := s.readDigests(results)
	if err != nil {
		return s.readError(err)
	}
	return s.judged(digests, sent), nil
}

func (s *Stream) readDigests(results pgx.BatchResults) ([]string, error) {
	defer results.Close()
	if _, err := results.Exec(); err != nil {
		return nil, err
	}
	rows, err := results.Query()
	if err != nil {
		return nil, err
	}
	digests, err := s.watch.read(rows)
	if err != nil {
		return nil, err
	}
	return digests, results.Close()
}

// judged moves the horizon if the digests are those of the schema in use.
func (s *Stream) judged(digests []string, sent time.Duration) (intact bool) {
	if !s.sameDigests(digests) {
		return false
	}
	s.advance(sent, s.last)
	return true
}

// trimmedUnread reports whether rows that were not visible in the last poll may have
// been deleted since. A trim raises the floor above the rows that it deletes, so an
// unchanged floor means that nothing was lost, even if a transaction that is older than
// the floor has been running all the time.
func (s *Stream) trimmedUnread(head pollHead) bool {
	return head.floor != s.floor && head.floor > s.last.XMin
}

// advance moves the horizon to the moment at which a complete poll was sent.
func (s *Stream) advance(sent time.Duration, seen cache.Snapshot) {
	if s.drift.jumped {
		return // the local clock is uncertain at that moment
	}
	if horizon, ok := s.vouched(sent); ok {
		s.sink.Advance(horizon, seen)
		s.checkpoint()
	}
}

// sameDigests compares the digests with those of the last survey. If they differ,
// the connection is closed, so that the next survey starts with the present
// settings, casts and policies; see [Stream.adopt] for the connections of loads.
func (s *Stream) sameDigests(digests []string) bool {
	known := s.origin.schema.Load().digests
	for i := range digests {
		if digests[i] != known[i] {
			s.changed = append(s.changed, i)
		}
	}
	if len(s.changed) > 0 {
		s.disconnect()
	}
	return len(s.changed) == 0
}

// readError distinguishes errors that a survey of the catalogs would explain from
// others.
func (s *Stream) readError(err error) (intact bool, _ error) {
	pgErr, isServer := errors.AsType[*pgconn.PgError](err)
	if errors.Is(err, errSurvey) {
		return false, nil
	}
	if isServer {
		if f := faultOf(pgErr); f != nil && f.changed {
			return false, nil
		}
	}
	return false, err
}

// judge refuses a poll that was read from another history.
func (s *Stream) judge(head pollHead) error {
	if known := s.origin.history.Load(); known == nil || *known != head.history {
		return fmt.Errorf("%w: history %v", errSurvey, head.history)
	}
	if head.snapshot.XMax < s.last.XMax {
		return fmt.Errorf("%w: transaction numbers went back", errSurvey)
	}
	if s.witness.Tx != 0 && !head.witnessed {
		return fmt.Errorf("%w: the newest change that was applied is gone", errSurvey)
	}
	return nil
}

func (s *Stream) apply(events []cache.Event) {
	s.eventCount.Add(int64(len(events)))
	s.sink.Apply(events)
}

// flushAll drops every document of every resource. Loads that began before are not
// stored; those that begin later see everything that was visible to the last
// statement, so the transaction of the event may be 0, which every snapshot sees.
func (s *Stream) flushAll() {
	for i := range s.origin.schema.Load().resources {
		s.flush(i)
	}
}

func (s *Stream) flush(resource int) {
	s.apply([]cache.Event{{Key: cache.Key{Resource: cache.ResourceID(resource)}, All: true}})
}
