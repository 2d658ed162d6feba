package postgres

import (
	"context"
	"fmt"
	"slices"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

// survey reads the catalogs and the history in one snapshot. It costs about 10
// statements, and runs when the stream starts and when a digest, the history or the
// connection has changed. It does not move the horizon: the poll that follows reads
// what changed since the last one, if that is still known, and verifies what the
// survey saw.
//
// Transactions that wrote to a table before its triggers existed leave no gap: CREATE
// TRIGGER waits for them, so a snapshot that sees the triggers sees them too.
func (s *Stream) survey(ctx context.Context) (err error) {
	began := time.Now()
	back := s.goBack()
	defer func() {
		if err != nil {
			back.undo(s)
		}
	}()
	found, err := s.look(ctx, back)
	if err != nil {
		return err
	}
	if err := s.refuse(found); err != nil {
		return err
	}
	if found.schema.tracked && found.history.incarnation == "" {
		// The server recovered: the first gateway gives the history its id.
		if _, err := s.conn.Exec(ctx, "SELECT slipstream.renew()"); err != nil {
			return fmt.Errorf("give the new history an id: %w", err)
		}
		if found, err = s.look(ctx, back); err != nil {
			return err
		}
	}
	s.surveys.Add(1)
	s.surveyed, s.surveyFor = time.Now(), time.Since(began)
	s.breakWith(found, back)
	back.judge(s, found)
	before := s.adopt(found, back)
	if !s.following || s.lostTrack(found) {
		// Documents loaded meanwhile were read before this snapshot, and changes
		// in between are missed.
		s.flushAll()
		s.last, s.floor, s.resumed = found.snapshot, found.floor, false
	}
	// Otherwise the poll that follows reads what changed since the last one.
	s.witness, s.following, s.dubious = found.newest, true, false
	for i, why := range found.schema.promises {
		if t := s.troubles[i]; why == "" && t.broken() {
			why = t.why
		}
		s.sink.SetPromise(cache.ResourceID(i), why == "", why)
		if why != "" && !found.schema.set.Retired[i] && (before == nil || i >= len(before.promises) || before.promises[i] != why) {
			s.origin.cfg.Logger.Warn("freshness cannot be promised", "resource", found.schema.set.Resources[i].Name, "why", why)
		}
	}
	s.origin.warnOfOwners(before, found.schema)
	s.digests = digestsByName(found.schema.set.Resources, found.schema.digests)
	s.store = max(s.store, back.store)
	s.follows.Store(found.schema.set)
	return nil
}

// refuse returns an error for a server on a timeline that its system has abandoned. It
// must be called before anything is changed: renew would make such a server look like
// a new history.
func (s *Stream) refuse(found *survey) error {
	known := s.origin.lineage.Load()
	if !known.left(found.system, found.history.timeline) {
		return nil
	}
	host := s.origin.streamTo.where()
	if s.host != nil {
		host = s.host.name
	}
	return &lowerTimelineError{host, found.system, found.history.timeline, known.timeline}
}

// breakWith voids the cache if the history is not the one that was followed so far.
func (s *Stream) breakWith(found *survey, back goneBack) {
	known := s.origin.history.Load()
	reason := ""
	switch {
	case known == nil:
		return
	case known.timeline != found.history.timeline:
		reason = fmt.Sprintf("the server went from timeline %s to %s", known.timeline, found.history.timeline)
	case known.incarnation != found.history.incarnation && found.history.incarnation == "":
		reason = "the record of changes was dropped, or may no longer be read"
	case known.incarnation == "" && found.history.incarnation != "":
		reason = "there is a record of changes now"
	case known.incarnation != found.history.incarnation:
		reason = "the server recovered from a crash, or is a different one"
	case known.database != found.history.database:
		reason = "another database has its name now"
	case s.followed.system != found.system:
		reason = "it is a different server"
	case s.following && !back.fresh && found.own == denied:
		reason = "the newest change that was applied is not in the record of changes: it is a copy, or rows were deleted"
	case s.following && found.snapshot.XMax < s.last.XMax:
		reason = "transaction numbers went back"
	default:
		return
	}
	s.origin.history.Store(nil)
	s.origin.pool.Reset() // connections to the previous server
	s.following = false
	s.voids.Add(1)
	s.origin.cfg.Logger.Warn("history broke, everything cached is dropped", "reason", reason)
	s.sink.Void(reason)
}

// adopt makes the schema the one that loads and polls use, and returns the
// previous one.
func (s *Stream) adopt(found *survey, back goneBack) (before *schema) {
	s.watch = found.watch
	s.reader = newEventReader(found.schema)
	s.statement = ""
	if found.schema.tracked {
		s.statement = changesStatement(false)
	}
	if before = s.origin.schema.Load(); before == nil || !slices.Equal(before.digests, found.schema.digests) {
		// Sessions keep the settings of the role and the database with which they
		// began, and prepared statements keep casts and policies.
		s.origin.pool.Reset()
	}
	before = s.origin.schema.Swap(found.schema)
	if next := (lineage{found.system, found.history.timeline}); s.followed != next {
		s.origin.cfg.Logger.Info("following a history of the database", "system", next.system, "timeline", short(next.timeline))
		s.followed = next
		s.drift = drift{} // perhaps another clock
		s.origin.lineage.Store(&next)
	}
	s.origin.history.Store(&found.history)
	for i := range s.troubles {
		// With other tables or triggers the trouble may be a different one.
		if before == nil || i >= len(before.digests) || i >= len(found.schema.digests) || before.digests[i] != found.schema.digests[i] {
			delete(s.troubles, i)
		}
	}
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

// lostTrack reports whether changes since the last poll may be lost, or are too many to
// apply.
func (s *Stream) lostTrack(found *survey) bool {
	return !found.schema.tracked || found.own == trimmedAway || found.stored == trimmedAway || s.trimmedUnread(found.pollHead) || s.timeouts >= slowPolls
}

// survey is the result of reading the catalogs once.
type survey struct {
	pollHead
	system string // pg_control_system().system_identifier
	schema *schema
	watch  *watch
	// own and stored are the testimonies of the change table about the positions of
	// the stream and of a store.
	own, stored testimony
}

// look reads everything in one transaction.
func (s *Stream) look(ctx context.Context, back goneBack) (*survey, error) {
	found := &survey{}
	err := pgx.BeginTxFunc(ctx, s.conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead}, func(tx pgx.Tx) error {
		// A survey that waits for one table keeps its locks on others, and an
		// ALTER TABLE that waits for those blocks writers. So it gives up before
		// deadlock_timeout (1 s) can choose the ALTER TABLE as the victim.
		if _, err := tx.Exec(ctx, "SET LOCAL lock_timeout = '200ms'"); err != nil {
			return err
		}
		err := s.sameDatabase(ctx, tx)
		if err != nil {
			return err
		}
		if err := tx.QueryRow(ctx, "SELECT s.system_identifier::pg_catalog.text FROM pg_catalog.pg_control_system() AS s").Scan(&found.system); err != nil {
			return err
		}
		unchanged, err := s.unchanged(ctx, tx)
		if err != nil {
			return err
		}
		if found.schema, err = s.origin.readJudged(ctx, tx, unchanged); err != nil {
			return err
		}
		if found.snapshot, found.history, err = readHeader(ctx, tx, found.schema.tracked); err != nil {
			return err
		}
		if found.watch, err = readWatch(ctx, tx, found.schema, s.origin.roles()...); err != nil {
			return err
		}
		rows, err := tx.Query(ctx, digestSQL, found.watch.arguments()...)
		if err != nil {
			return err
		}
		if found.schema.digests, err = found.watch.read(rows); err != nil {
			return err
		}
		if !found.schema.tracked {
			return nil
		}
		return s.testimonies(ctx, tx, found, back)
	})
	return found, err
}

// sameDatabase refuses a StreamURL that leads to another database of the server
// than URL. Nothing else distinguishes a database from one that was created with
// it as the template: they share the incarnation and the transaction IDs.
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

// testimonies queries the change table about the positions from which the survey
// continues, and reads the witness of the next one.
func (s *Stream) testimonies(ctx context.Context, tx pgx.Tx, found *survey, back goneBack) (err error) {
	if s.following && !back.fresh {
		own := position{s.last, s.floor, s.witness}
		if back.position.History != "" {
			own = position{back.last, back.floor, s.witness}
		}
		if found.own, err = testify(ctx, tx, own); err != nil {
			return err
		}
	}
	if p := back.position; p.History != "" {
		if found.stored, err = testify(ctx, tx, position{p.Seen, p.Floor, p.Witness}); err != nil {
			return err
		}
	}
	return found.readNewest(ctx, tx)
}

// readHeader reads the snapshot and the history of the transaction.
func readHeader(ctx context.Context, tx pgx.Tx, tracked bool) (snapshot cache.Snapshot, h history, err error) {
	var text string
	if err := tx.QueryRow(ctx, "SELECT "+header(tracked)).Scan(&text); err != nil {
		return snapshot, h, err
	}
	return parseHeader(text)
}

// unchanged returns the resources whose digests are those of the present schema, by
// index. Their compiled form is still right, as after a check that finds no difference. A
// statement takes 20 ms to compile, and while a table is truncated again and again only
// the resources that depend on it need that.
func (s *Stream) unchanged(ctx context.Context, tx pgx.Tx) (map[int]*compiled, error) {
	known := s.origin.schema.Load()
	if s.watch == nil || known == nil || known.set != s.origin.set.Load() || len(known.digests) != len(known.resources) {
		return nil, nil
	}
	rows, err := tx.Query(ctx, digestSQL, s.watch.arguments()...)
	if err != nil {
		return nil, err
	}
	digests, err := s.watch.read(rows)
	if err != nil {
		return nil, err
	}
	list := make(map[int]*compiled)
	for i, c := range known.resources {
		if c.Err == nil && digests[i] == known.digests[i] {
			list[i] = c
		}
	}
	return list, nil
}

// readJudged resolves the resources and determines which of them can be promised.
func (o *Origin) readJudged(ctx context.Context, tx pgx.Tx, unchanged map[int]*compiled) (*schema, error) {
	s, err := readSchemaAgain(ctx, tx, o.set.Load(), unchanged)
	if err != nil {
		return nil, err
	}
	tree.RefuseNewKinds(s.set, s.resources)
	objects, err := readObjects(ctx, tx)
	if err != nil {
		return nil, err
	}
	s.judge(objects, o.cfg)
	s.ownerFaults = objects.ownerFaults("")
	for i, c := range s.resources {
		switch {
		case c.Err != nil:
			s.promises[i] = c.Err.Error()
		case !s.tracked && s.promises[i] == "" && !c.Resource.NoPromise:
			s.promises[i] = "the gateway's role may not read the tables of schema slipstream; run slipstream db apply --grant ROLE"
		}
	}
	return s, nil
}
