package postgres

import (
	"context"
	"fmt"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
)

// survey reads the catalogs, the history and what changed since the last poll, all
// in one snapshot, and starts from there. Its cost is some 10 statements; it runs
// when the stream starts, and when a digest, the history or a connection changed.
//
// Transactions that wrote to a table before its triggers existed are no gap:
// CREATE TRIGGER waits for them, so a snapshot that sees the triggers sees them too.
func (s *Stream) survey(ctx context.Context, sent time.Duration) (err error) {
	began := time.Now()
	back := s.goBack()
	defer func() {
		if err != nil {
			back.undo(s)
		}
	}()
	found, err := s.look(ctx)
	if err != nil {
		return err
	}
	if found.schema.tracked && found.history.incarnation == "" {
		// The server recovered: whoever comes first gives the history its id.
		if _, err := s.conn.Exec(ctx, "SELECT slipstream.renew()"); err != nil {
			return fmt.Errorf("give the new history an id: %w", err)
		}
		if found, err = s.look(ctx); err != nil {
			return err
		}
	}
	s.surveys.Add(1)
	s.surveyed, s.surveyFor = time.Now(), time.Since(began)
	s.breakWith(found)
	back.judge(s, found)
	before := s.adopt(found, back)
	if s.following {
		s.catchUp(found)
	} else {
		// What was loaded meanwhile was read before this snapshot, and what
		// changed in between goes unheard.
		s.flushAll()
	}
	s.last, s.floor, s.following, s.dubious = found.snapshot, found.floor, true, false
	for i, why := range found.schema.promises {
		s.sink.SetPromise(cache.ResourceID(i), why == "", why)
		if why != "" && !found.schema.set.Retired[i] && (before == nil || i >= len(before.promises) || before.promises[i] != why) {
			s.origin.cfg.Logger.Warn("freshness cannot be promised", "resource", found.schema.set.Resources[i].Name, "why", why)
		}
	}
	s.sink.Advance(s.vouched(sent), found.snapshot)
	s.digests = digestsByName(found.schema.set.Resources, found.schema.digests)
	s.database = found.database
	s.store = max(s.store, back.store)
	s.follows.Store(found.schema.set)
	s.checkpoint()
	return nil
}

// breakWith voids the cache if the history is another one than so far.
func (s *Stream) breakWith(found *survey) {
	known := s.origin.history.Load()
	reason := ""
	switch {
	case known == nil:
		return
	case known.timeline != found.history.timeline:
		reason = fmt.Sprintf("the server went from timeline %s to %s", known.timeline, found.history.timeline)
	case known.incarnation != found.history.incarnation && found.history.incarnation == "":
		reason = "the record of changes was dropped, or may not be read any more"
	case known.incarnation == "" && found.history.incarnation != "":
		reason = "there is a record of changes now"
	case known.incarnation != found.history.incarnation:
		reason = "the server recovered from a crash, or is another one"
	case s.database != "" && s.database != found.database:
		reason = "another database has its name now"
	case s.following && found.snapshot.XMax < s.last.XMax:
		reason = "transaction numbers went back"
	default:
		return
	}
	s.origin.history.Store(nil)
	s.origin.pool.Reset() // connections to the server of before
	s.following = false
	s.voids.Add(1)
	s.origin.cfg.Logger.Warn("history broke, everything cached is dropped", "reason", reason)
	s.sink.Void(reason)
}

// adopt makes the schema the one that loads and polls use, and returns the one
// before.
func (s *Stream) adopt(found *survey, back goneBack) (before *schema) {
	s.watch = found.watch
	s.reader = newEventReader(found.schema)
	s.statement = ""
	if found.schema.tracked {
		s.statement = changesStatement(found.schema)
	}
	before = s.origin.schema.Swap(found.schema)
	s.origin.history.Store(&found.history)
	if !s.following {
		return before
	}
	// After the swap: loads that begin after the flush use the new schema.
	for i := range found.schema.resources {
		known := before != nil && i < len(before.digests) && before.digests[i] == found.schema.digests[i]
		if !known && !back.fresh || !back.knows(found.schema.set.Resources[i].Name, found.schema.digests[i]) {
			s.origin.cfg.Logger.Info("tables or triggers changed, the resource is flushed", "resource", found.schema.set.Resources[i].Name)
			s.flush(i)
		}
	}
	return before
}

// catchUp applies what changed between the last poll and the survey.
func (s *Stream) catchUp(found *survey) {
	if !found.schema.tracked || s.trimmedUnread(found.pollHead) || found.rows > maxChanges || s.timeouts >= slowPolls {
		s.flushAll()
		return
	}
	s.apply(found.events)
}

// survey is what one look at the database shows.
type survey struct {
	pollHead
	database string // its number in the server
	schema   *schema
	watch    *watch
	events   []cache.Event
}

// look reads everything in one transaction.
func (s *Stream) look(ctx context.Context) (*survey, error) {
	found := &survey{}
	err := pgx.BeginTxFunc(ctx, s.conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		// A survey that waits for one table keeps its locks on others, and an
		// ALTER TABLE that waits for these makes writers wait. So it gives up
		// before deadlock_timeout (1 s) can choose the ALTER TABLE as the victim.
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '500ms'"); err != nil {
			return err
		}
		err := s.sameDatabase(ctx, tx)
		if err != nil {
			return err
		}
		if found.database, err = readDatabase(ctx, tx); err != nil {
			return err
		}
		if found.schema, err = s.origin.readJudged(ctx, tx); err != nil {
			return err
		}
		if found.snapshot, found.history, err = readHeader(ctx, tx, found.schema.tracked); err != nil {
			return err
		}
		found.watch = newWatch(found.schema)
		rows, err := tx.Query(ctx, digestSQL, found.watch.arguments()...)
		if err != nil {
			return err
		}
		if found.schema.digests, err = found.watch.read(rows); err != nil {
			return err
		}
		if found.schema.tracked && s.following && s.timeouts < slowPolls {
			return s.readGap(ctx, tx, found)
		}
		return nil
	})
	return found, err
}

// sameDatabase refuses a StreamURL that leads to another database of the server
// than URL. Nothing else tells a database from one that was made with it as the
// template: they share the incarnation and the transaction numbers.
func (s *Stream) sameDatabase(ctx context.Context, tx pgx.Tx) error {
	if s.origin.streamTo == s.origin.loadFrom {
		return nil
	}
	var name string
	if err := tx.QueryRow(ctx, "SELECT pg_catalog.current_database()::pg_catalog.text").Scan(&name); err != nil {
		return err
	}
	if name != s.origin.database {
		return fmt.Errorf("stream_url leads to the database %s and url to %s; expected the same one", quoteName(name), quoteName(s.origin.database))
	}
	return nil
}

// readGap reads the changes since the last poll; the transaction may have
// begun long after it.
func (s *Stream) readGap(ctx context.Context, tx pgx.Tx, found *survey) error {
	rows, err := tx.Query(ctx, changesStatement(found.schema), changesArguments(s.last)...)
	if err != nil {
		return err
	}
	keep := func(events []cache.Event) { found.events = append(found.events, events...) }
	seen := s.toFresh.add
	if s.origin.history.Load() == nil { // before this process: no delay of its
		seen = func(time.Duration) {}
	}
	head, err := readChanges(rows, newEventReader(found.schema), func(pollHead) error { return nil }, keep, seen)
	found.floor, found.rows = head.floor, head.rows
	return err
}

// readHeader reads the snapshot and the history of the transaction.
func readHeader(ctx context.Context, tx pgx.Tx, tracked bool) (snapshot cache.Snapshot, h history, err error) {
	var text string
	if err := tx.QueryRow(ctx, "SELECT "+header(tracked)).Scan(&text); err != nil {
		return snapshot, h, err
	}
	return parseHeader(text)
}

// readJudged resolves the resources and says which of them may be promised.
func (o *Origin) readJudged(ctx context.Context, tx pgx.Tx) (*schema, error) {
	s, err := readSchema(ctx, tx, o.set.Load())
	if err != nil {
		return nil, err
	}
	o.refuseNewKeys(s)
	objects, err := readObjects(ctx, tx)
	if err != nil {
		return nil, err
	}
	s.judge(objects, o.cfg)
	for i, c := range s.resources {
		switch {
		case c.err != nil:
			s.promises[i] = c.err.Error()
		case !s.tracked && s.promises[i] == "" && !c.resource.NoPromise:
			s.promises[i] = "the gateway's role may not read the tables of schema slipstream; run slipstream db apply --grant ROLE"
		}
	}
	return s, nil
}
