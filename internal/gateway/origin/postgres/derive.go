package postgres

import (
	"context"
	"errors"
	"fmt"
	"maps"
	"slices"
	"strconv"
	"time"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/cache"
)

// Derivations lead from recorded rows to the documents that contain them. They
// read tables of users and run their code, so they may wait for a lock, take long, or
// fail. The derivations of each resource are executed separately, after the changes were
// read and in the same snapshot. A derivation that fails breaks the promise of its own
// resource, and costs the others only its share of the time.

const (
	// firstRetry and lastRetry bound the pause before a resource that lost its promise
	// has its changes followed again.
	firstRetry = 250 * time.Millisecond
	lastRetry  = 30 * time.Second
	// defaultLockPatience is how long the derivations of a poll wait for locks, after all
	// those that need not wait.
	defaultLockPatience = 100 * time.Millisecond
)

// links are the rows for which derivations of one resource have to be executed.
type links struct {
	statements []string
	rows       []map[string][]cache.Tx // per statement: recorded texts, and by which transactions
}

// link records a row from which documents have to be derived.
func (r *eventReader) link(l listener, key string, tx cache.Tx) {
	if r.mute[l.resource] {
		return
	}
	all := r.links[l.resource]
	if all == nil {
		all = &links{}
		r.links[l.resource] = all
	}
	i := slices.Index(all.statements, l.derive)
	if i < 0 {
		i = len(all.statements)
		all.statements, all.rows = append(all.statements, l.derive), append(all.rows, make(map[string][]cache.Tx))
	}
	all.rows[i][key] = append(all.rows[i][key], tx)
	r.linked++
}

// derivationStatement returns the statement that executes a derivation for the recorded
// texts in $1. The first column of a row is the position of the text, from 1.
//
// LATERAL and OFFSET 0 keep the derivation a nested loop over the changed rows: the
// planner, which cannot know that there are only a few, would otherwise hash whole
// tables.
func derivationStatement(derive string) string {
	return fmt.Sprintf(`SELECT c.n::pg_catalog.text, d.key FROM pg_catalog.unnest($1::pg_catalog.text[]) WITH ORDINALITY AS c(key, n)
CROSS JOIN LATERAL (SELECT q.key FROM (%s) AS q(key) OFFSET 0) AS d LIMIT %d`, derive, maxChanges+1)
}

// queuePatience queues the statements that limit how long a derivation may wait for a lock
// and run in total, and the savepoint to which a failed one is rolled back. They run before
// the derivations, because the driver prepares statements, which takes locks, before it
// sends their batch.
func (s *Stream) queuePatience(batch *pgx.Batch, lockWait, limit time.Duration) {
	batch.Queue("SELECT pg_catalog.set_config('search_path', $1::pg_catalog.text, true), pg_catalog.set_config('lock_timeout', $2::pg_catalog.text, true), pg_catalog.set_config('statement_timeout', $3::pg_catalog.text, true)",
		s.origin.schema.Load().path.role, milliseconds(lockWait), milliseconds(limit))
	batch.Queue("SAVEPOINT slipstream")
}

// derivationLimit is the time that the derivations of one resource may take.
func (s *Stream) derivationLimit() time.Duration { return s.origin.cfg.Freshness / 8 }

// noLockWait is how long a derivation waits for a lock at first: unlocked tables must not
// be delayed by locked ones.
const noLockWait = time.Millisecond

// derive applies the derivations from the links of the reader, in the transaction of
// the poll, whose snapshot showed them. It spends at most a quarter of the promise,
// and an eighth on one resource. The error is one of the connection.
//
// queuePatience with noLockWait and the limit has been executed.
func (s *Stream) derive(ctx context.Context) error {
	end := time.Now().Add(2 * s.derivationLimit())
	locked, err := s.deriveEach(ctx, s.linked(), end, noLockWait)
	if err != nil || len(locked) == 0 {
		return err
	}
	// A resource that has lost its promise gets no time for waiting.
	for i, why := range locked {
		if s.troubles[i].broken() {
			s.breakPromise(i, why)
			delete(locked, i)
		}
	}
	lockWait := min(s.lockPatience, s.derivationLimit())
	if err := s.setPatience(ctx, lockWait, s.derivationLimit()); err != nil {
		return err
	}
	for _, i := range slices.Sorted(maps.Keys(locked)) {
		again, err := s.deriveEach(ctx, []int{i}, end, lockWait)
		if err != nil {
			return err
		}
		if again[i] == nil {
			delete(locked, i)
		} else {
			break // the patience is that of the poll
		}
	}
	for _, i := range slices.Sorted(maps.Keys(locked)) {
		s.breakPromise(i, locked[i])
	}
	return nil
}

func (s *Stream) setPatience(ctx context.Context, lockWait, limit time.Duration) error {
	batch := &pgx.Batch{}
	s.queuePatience(batch, lockWait, limit)
	return s.conn.SendBatch(ctx, batch).Close()
}

// linked returns the resources with links, those without a promise last. Otherwise each is
// first in turn, so that slow ones do not always use up the time of the same others.
func (s *Stream) linked() (resources []int) {
	var broken []int
	for i, l := range s.reader.links {
		switch {
		case l == nil:
		case s.troubles[i].broken():
			broken = append(broken, i)
		default:
			resources = append(resources, i)
		}
	}
	if n := len(resources); n > 0 {
		s.turn++
		at := s.turn % n
		resources = slices.Concat(resources[at:], resources[:at])
	}
	return append(resources, broken...)
}

// deriveEach executes the derivations of the resources, one after the other, and
// returns those that met a lock. What fails otherwise, or is not reached in time, breaks
// the promise of its resource.
func (s *Stream) deriveEach(ctx context.Context, resources []int, end time.Time, lockWait time.Duration) (locked map[int]error, err error) {
	locked = make(map[int]error)
	for _, i := range resources {
		if rest := time.Until(end); rest < time.Millisecond {
			s.breakPromise(i, errors.New("there was no time left for it after the derivations of other resources"))
			continue
		} else if rest < s.derivationLimit() {
			if err := s.setPatience(ctx, lockWait, rest); err != nil {
				return locked, err
			}
		}
		err := s.deriveOne(ctx, s.reader.links[i], i)
		pgErr, isServer := errors.AsType[*pgconn.PgError](err)
		switch {
		case err == nil:
		case !isServer || s.conn.IsClosed() || ctx.Err() != nil:
			return locked, err
		default:
			s.reader.forgetEvents()
			if _, err := s.conn.Exec(ctx, "ROLLBACK TO SAVEPOINT slipstream"); err != nil {
				return locked, err
			}
			if isLocked(pgErr) {
				locked[i] = oneLine{pgErr}
				continue
			}
			if f := faultOf(pgErr); f != nil && f.changed {
				s.dubious = true
			}
			s.breakPromise(i, oneLine{pgErr})
		}
	}
	return locked, nil
}

// deriveOne executes the derivations of one resource and applies their events.
func (s *Stream) deriveOne(ctx context.Context, l *links, resource int) error {
	batch := &pgx.Batch{}
	keys := make([][]string, len(l.statements))
	for at, statement := range l.statements {
		for key := range l.rows[at] {
			keys[at] = append(keys[at], key)
		}
		batch.Queue(derivationStatement(statement), keys[at])
	}
	results := s.conn.SendBatch(ctx, batch)
	defer results.Close()
	received := 0
	for at := range l.statements {
		rows, err := results.Query()
		if err != nil {
			return err
		}
		if err := s.readDerived(rows, resource, keys[at], l.rows[at], &received); err != nil {
			return err
		}
	}
	if err := results.Close(); err != nil {
		return err
	}
	if received > maxChanges {
		s.flush(resource) // one link may lead to a million documents: a currency, a tax rate
		s.reader.forgetEvents()
		return nil
	}
	s.reader.take(s.apply)
	return nil
}

// readDerived reads the documents that a derivation has found.
func (s *Stream) readDerived(rows pgx.Rows, resource int, keys []string, transactions map[string][]cache.Tx, received *int) error {
	defer rows.Close()
	c := s.origin.schema.Load().resources[resource]
	for rows.Next() {
		values := rows.RawValues()
		place, err := strconv.Atoi(string(values[0]))
		if err != nil || place < 1 || place > len(keys) {
			return fmt.Errorf("a derivation returned row %q of %d", values[0], len(keys))
		}
		for _, tx := range transactions[keys[place-1]] {
			if *received++; *received > maxChanges {
				continue
			}
			if values[1] == nil {
				s.reader.flush(resource, tx)
			} else {
				s.reader.document(c, resource, string(values[1]), tx)
			}
		}
	}
	return rows.Err()
}

// milliseconds is a duration as a setting of PostgreSQL, at least 1 ms: 0 is no limit.
func milliseconds(d time.Duration) string {
	return strconv.FormatInt(max(d.Milliseconds(), 1), 10)
}

// trouble is a resource whose changes could not be followed.
type trouble struct {
	why      string
	pause    time.Duration // before the next attempt
	until    time.Time     // when that is; zero while the promise holds
	regained time.Time
}

// broken reports whether the resource has no promise because of the trouble.
func (t *trouble) broken() bool { return t != nil && !t.until.IsZero() }

// breakPromise withdraws the promise of a resource, which drops its documents, for a
// pause that grows each time.
func (s *Stream) breakPromise(i int, err error) {
	now := time.Now()
	t := s.troubles[i]
	switch {
	case t == nil:
		t = &trouble{pause: firstRetry}
		if s.troubles == nil {
			s.troubles = make(map[int]*trouble)
		}
		s.troubles[i] = t
	case t.broken() || now.Sub(t.regained) < t.pause: // it held for less time than it was lost
		t.pause = min(2*t.pause, lastRetry)
	default:
		t.pause = firstRetry
	}
	t.until = now.Add(t.pause)
	t.why = fmt.Sprintf("the documents that changed rows belong to could not be found: %v; retried after %v", err, t.pause)
	s.derivationsFailed.Add(1)
	s.sink.SetPromise(cache.ResourceID(i), false, t.why)
	s.origin.cfg.Logger.Warn("freshness cannot be promised", "resource", s.origin.schema.Load().set.Resources[i].Name, "why", t.why)
}

// muteTroubled makes the reader skip the links of resources that are in trouble, until
// the next attempt. Such a resource has no document that a change could concern.
func (s *Stream) muteTroubled(now time.Time) {
	clear(s.reader.mute)
	for i, t := range s.troubles {
		s.reader.mute[i] = t.broken() && now.Before(t.until)
	}
}

// regain restores the promise of resources whose changes, if any, were followed by this poll.
// Documents that are loaded from now on include everything that happened so far.
func (s *Stream) regain(schema *schema) {
	for _, i := range slices.Sorted(maps.Keys(s.troubles)) {
		t := s.troubles[i]
		if !t.broken() || s.reader.mute[i] || time.Now().Before(t.until) {
			continue
		}
		t.until, t.regained = time.Time{}, time.Now()
		if schema.promises[i] == "" {
			s.sink.SetPromise(cache.ResourceID(i), true, "")
			s.origin.cfg.Logger.Info("freshness is promised again", "resource", schema.set.Resources[i].Name)
		}
	}
}
