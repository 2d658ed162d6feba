package postgres

import (
	"context"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// retentionSQL reads what the change table keeps: its size, the rows and bytes of a
// sample of it with the sample's percentage, and the age of its oldest row in
// seconds. $1 is KeepBytes. The search for the oldest row begins where trimming
// begins; see trimBody.
var retentionSQL = `SELECT pg_catalog.pg_total_relation_size('slipstream.change'::pg_catalog.regclass), s.bytes, ` + shareSQL("$1::pg_catalog.text::pg_catalog.int8") + `::pg_catalog.float8,
	COALESCE((SELECT pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) c.at) FROM slipstream.change AS c
		WHERE c.xid OPERATOR(pg_catalog.>=) (SELECT (m.complete_from::pg_catalog.text::pg_catalog.int8 OPERATOR(pg_catalog.-) 1::pg_catalog.int8)::pg_catalog.text::pg_catalog.xid8 FROM slipstream.meta AS m)
		ORDER BY c.xid LIMIT 1), 0)
	FROM (SELECT ` + keptSQL(shareSQL("$1::pg_catalog.text::pg_catalog.int8")) + `) AS s`

// holdersSQL lists what keeps rows from being deleted: the oldest transaction with a
// transaction ID, whose rows and all later ones are not deleted; and the oldest
// snapshot, if it is older still, whether of a session of this database, of a standby or
// of a replication slot. Only a member of pg_read_all_stats sees the snapshots of other
// roles and the beginning of their transactions; pg_locks shows to every role which
// sessions have a transaction ID.
const holdersSQL = `WITH h AS (
	SELECT true AS deletes, 'transaction' AS kind, a.pid, l.transactionid AS xid, a.application_name AS name, a.xact_start AS since
	FROM pg_catalog.pg_locks AS l JOIN pg_catalog.pg_stat_activity AS a ON a.pid OPERATOR(pg_catalog.=) l.pid
	WHERE l.locktype OPERATOR(pg_catalog.=) 'transactionid' AND l.granted AND l.mode OPERATOR(pg_catalog.=) 'ExclusiveLock'
	UNION ALL
	SELECT true, 'prepared transaction', 0, p.transaction, p.gid, p.prepared FROM pg_catalog.pg_prepared_xacts AS p
	UNION ALL
	SELECT false, 'snapshot', a.pid, a.backend_xmin, a.application_name, a.xact_start FROM pg_catalog.pg_stat_activity AS a
	WHERE a.backend_xmin IS NOT NULL AND a.backend_type OPERATOR(pg_catalog.=) ANY (ARRAY['client backend', 'walsender', 'background worker'])
		AND (a.datname OPERATOR(pg_catalog.=) pg_catalog.current_database() OR a.datname IS NULL)
	UNION ALL
	SELECT false, 'replication slot', COALESCE(s.active_pid, 0), s.xmin, s.slot_name, NULL FROM pg_catalog.pg_replication_slots AS s
	WHERE s.xmin IS NOT NULL
), oldest AS (
	SELECT h.*, pg_catalog.age(h.xid) AS behind, pg_catalog.row_number() OVER (PARTITION BY h.deletes ORDER BY pg_catalog.age(h.xid) DESC) AS place
	FROM h WHERE h.pid OPERATOR(pg_catalog.<>) pg_catalog.pg_backend_pid()
)
SELECT o.deletes, o.kind, o.pid::pg_catalog.int8, o.xid::pg_catalog.text, COALESCE(o.name::pg_catalog.text, ''),
	COALESCE(pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) o.since), 0)
FROM oldest AS o
WHERE o.place OPERATOR(pg_catalog.=) 1 AND (o.deletes OR NOT EXISTS (SELECT FROM oldest AS d WHERE d.deletes AND d.behind OPERATOR(pg_catalog.>=) o.behind))
ORDER BY o.deletes DESC`

// patience is the minimum age of the transaction of a holder.
const patience = time.Minute

// Retention reads what the change table keeps. The second result is false if
// there is no such table, or the connected role may not read it.
func (o *Origin) Retention(ctx context.Context) (r origin.Retention, ok bool, err error) {
	err = pgx.BeginTxFunc(ctx, o.pool, pgx.TxOptions{AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) error {
		if _, err := pinPath(ctx, tx); err != nil {
			return err
		}
		f := &found{objects: make(map[string]foundObject)}
		if err := f.readRelations(ctx, tx); err != nil {
			return err
		}
		for _, name := range []string{changeName, metaName} {
			if _, readable, err := f.readable(ctx, tx, name); err != nil || !readable {
				return err
			}
		}
		var holders []origin.Holder
		if r, holders, err = readRetention(ctx, tx, o.cfg); err != nil {
			return err
		}
		r.Holders = slices.DeleteFunc(holders, func(h origin.Holder) bool { return h.Age < patience })
		r.Bound, ok = boundOf(r), true
		return nil
	})
	return r, ok, o.wrapError(ctx, "read what the change table keeps", o.loadFrom, err)
}

// querier is a connection, a pool of them or a transaction.
type querier interface {
	Query(context.Context, string, ...any) (pgx.Rows, error)
	QueryRow(context.Context, string, ...any) pgx.Row
}

// readRetention reads everything except the bound. It includes all holders, however
// young.
func readRetention(ctx context.Context, q querier, cfg Config) (r origin.Retention, holders []origin.Holder, err error) {
	r.KeepChanges, r.KeepBytes = cfg.KeepChanges, cfg.KeepBytes
	var sampled, share, age float64
	if err := q.QueryRow(ctx, retentionSQL, strconv.FormatInt(cfg.KeepBytes, 10)).Scan(&r.Bytes, &sampled, &share, &age); err != nil {
		return r, nil, err
	}
	// The sample may be inaccurate; the rows cannot be larger than the table.
	r.Kept, r.Reach = min(int64(sampled*100/share), r.Bytes), seconds(age)
	holders, err = readHolders(ctx, q)
	return r, holders, err
}

// readHolders lists what keeps rows, beginning with the holder that keeps them from
// deletion.
func readHolders(ctx context.Context, q querier) (holders []origin.Holder, err error) {
	rows, err := q.Query(ctx, holdersSQL)
	if err != nil {
		return nil, err
	}
	var h origin.Holder
	var age float64
	_, err = pgx.ForEachRow(rows, []any{&h.Deletes, &h.Kind, &h.PID, &h.XID, &h.Name, &age}, func() error {
		h.Age, h.Name = seconds(age), strings.ToValidUTF8(h.Name, "?") // one for a metric's label
		holders = append(holders, h)
		return nil
	})
	return holders, err
}

func seconds(s float64) time.Duration {
	return time.Duration(max(s, 0) * float64(time.Second))
}

// boundOf returns what limits the reach of a change table that was trimmed recently.
// Rows a tenth beyond a bound are held: trimming could not delete them.
func boundOf(r origin.Retention) origin.Bound {
	held := slices.ContainsFunc(r.Holders, func(h origin.Holder) bool { return h.Deletes })
	switch {
	case held && (r.Reach > r.KeepChanges+r.KeepChanges/10 || r.Kept > r.KeepBytes+r.KeepBytes/10):
		return origin.BoundTransaction
	case r.Reach < r.KeepChanges && r.Kept > r.KeepBytes-r.KeepBytes/10:
		return origin.BoundBytes
	}
	return origin.BoundTime
}

// retain reads the retention for [Stream.Stats]. The trimmer calls it.
func (s *Stream) retain(ctx context.Context) error {
	r, holders, err := readRetention(ctx, s.origin.pool, s.origin.cfg)
	if err != nil {
		return err
	}
	now := s.clock()
	r.Holders = s.holders.watch(holders, now)
	r.Bound = boundOf(r)
	if before := s.retention.Swap(&r); r.Bound == origin.BoundTransaction && (before == nil || before.Bound != r.Bound) {
		s.origin.cfg.Logger.Warn("the change table grows: rows of a transaction in progress and of later ones are never deleted",
			"held_by", r.Holders[0].String(), "bytes", r.Bytes, "keep_bytes", r.KeepBytes)
	}
	return nil
}

// sightings are the holders that were seen last, with the times of their first sighting.
// They give the age of a slot, and of a transaction whose start the gateway's role may
// not see.
type sightings map[origin.Holder]time.Duration

// watch returns the holders that have been there for long enough, with their ages.
func (s *sightings) watch(holders []origin.Holder, now time.Duration) (old []origin.Holder) {
	next := make(sightings)
	for _, h := range holders {
		age := h.Age
		h.Age = 0
		since, ok := (*s)[h]
		if !ok {
			since = now
		}
		next[h] = since
		if h.Age = max(age, now-since); h.Age >= patience {
			old = append(old, h)
		}
	}
	*s = next
	return old
}
