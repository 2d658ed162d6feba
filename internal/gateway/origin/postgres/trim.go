package postgres

import (
	"context"
	"fmt"
	"strconv"
	"time"
)

// trimRows is the maximum of rows that one statement deletes: some 40 ms of work.
const trimRows = 20_000

// The name of the trimming function carries a hash of its definition: gateways of
// another release continue to use theirs until db prune.
var (
	trimBare = "trim@" + hashOf(trimParameters+trimSet+trimBody)
	trimCall = "slipstream." + quoteName(trimBare)
	trimName = trimCall + "(" + trimArguments["interval, bigint, integer"] + ")"
)

// trimArguments are the argument types of trimming functions of this release and of
// earlier ones: as the catalogs name them, and as we do.
var trimArguments = map[string]string{
	"interval, bigint, integer": "pg_catalog.interval, pg_catalog.int8, pg_catalog.int4",
	"interval, integer":         "pg_catalog.interval, pg_catalog.int4",
}

const (
	trimParameters = "(keep pg_catalog.interval, keep_bytes pg_catalog.int8, at_most pg_catalog.int4)"
	// Without sorts, every ORDER BY is a scan of the index, whatever the statistics
	// of the table say.
	trimSet       = ownPath + " SET enable_sort = off"
	trimSetConfig = ownPathConfig + "; enable_sort=off"
)

// The size of a row of the change table, with its entry in the index, in addition to
// the lengths of its two texts: 44 bytes of header, line pointer, xid and at, 20 in
// the index, and alignment and unused room in pages.
const rowOverhead = 72

// keptSQL selects how many rows a sample of the change table has, and the bytes that
// they take. share is the percentage of its pages in the sample. The pages are the
// same each time: random ones would err in another direction with each call, and rows
// that are deleted by mistake do not come back.
func keptSQL(share string) string {
	return fmt.Sprintf(`pg_catalog.count(*)::pg_catalog.int8 AS live,
	COALESCE(pg_catalog.sum(%d OPERATOR(pg_catalog.+) pg_catalog.pg_column_size(c.source) OPERATOR(pg_catalog.+) COALESCE(pg_catalog.pg_column_size(c.key), 0)), 0)::pg_catalog.float8 AS bytes
	FROM slipstream.change AS c TABLESAMPLE pg_catalog.system (%s) REPEATABLE (0)`, rowOverhead, share)
}

// shareSQL is an expression for the share of [keptSQL] if as many bytes are to be kept
// as the expression bound says: 256 of the pages that they fill, which errs by some
// 6 %, and at most 2,048 of a table that is bloated. A table of less than 2 MiB is read
// as a whole.
func shareSQL(bound string) string {
	return fmt.Sprintf(`LEAST('100'::pg_catalog.float4, '2.1e8'::pg_catalog.float4 OPERATOR(pg_catalog./) (%s)::pg_catalog.float4,
		'2.1e5'::pg_catalog.float4 OPERATOR(pg_catalog./) GREATEST(1::pg_catalog.float4, (pg_catalog.pg_relation_size('slipstream.change'::pg_catalog.regclass) OPERATOR(pg_catalog./) 8192::pg_catalog.int8)::pg_catalog.float4))`, bound)
}

// trimBody deletes the oldest rows: those older than keep, and the younger ones that
// are more than keep_bytes. It raises complete_from above all of them in the same
// transaction: a stream that has not read them by then sees that something is gone.
//
// Only transactions below the snapshot's xmin are considered: they have ended, so all
// of their rows are there. The newest of them stays, and so does everything above it:
// complete_from never passes the newest row of the table, which is the witness of the
// history. A row that is not older than keep ends the page with all of its transaction;
// beyond it, rows that only look old (a clock set back) stay. A transaction with more
// rows than one page is deleted in several calls, and complete_from is above it from
// the first.
//
// A page begins just below complete_from, at the transaction that the previous call may
// have deleted partly. Rows that were deleted earlier are to the left of it in the
// index. While a snapshot that is older than the deletion exists, those entries can be
// neither removed nor skipped, and there may be millions. Two trimmers never wait for
// each other: the second returns immediately.
//
// A transaction that was open when the record began may have written below
// complete_from later. Its rows are swept: each call examines 64 random pages of the
// table, but only if it raises complete_from, which shows readers that have not read the
// rows that they are gone.
var trimBody = fmt.Sprintf(`
DECLARE
  cutoff timestamptz := now() - keep;
  share float4;
  live bigint;
  bytes float8;
  first xid8;
  below xid8;
  deleted bigint;
  newest bigint;
  swept bigint;
BEGIN
  IF keep IS NULL OR keep < interval '1 minute' THEN
    RAISE EXCEPTION 'slipstream.trim: keep is %%, expected at least 1 minute', keep USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF keep_bytes IS NULL OR keep_bytes < 1048576 THEN
    RAISE EXCEPTION 'slipstream.trim: keep_bytes is %%, expected at least 1048576', keep_bytes USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF at_most IS NULL OR at_most < 1 THEN
    RAISE EXCEPTION 'slipstream.trim: at_most is %%, expected at least 1', at_most USING ERRCODE = 'invalid_parameter_value';
  END IF;
  IF NOT pg_try_advisory_xact_lock(%d, %d) THEN
    RETURN 0;
  END IF;
  first := (SELECT (m.complete_from::text::bigint - 1)::text::xid8 FROM slipstream.meta AS m);
  below := (SELECT c.xid FROM slipstream.change AS c
    WHERE c.xid >= first AND c.xid < pg_snapshot_xmin(pg_current_snapshot()) ORDER BY c.xid DESC LIMIT 1);
  IF pg_total_relation_size('slipstream.change') > keep_bytes THEN
    share := %s;
    SELECT s.live, s.bytes INTO live, bytes FROM (SELECT %s) AS s;
    IF bytes * 100 / share > keep_bytes THEN
      at_most := least(at_most, ceil((bytes * 100 / share - keep_bytes) * live / bytes));
      cutoff := 'infinity';
    END IF;
  END IF;
  IF (SELECT c.at FROM slipstream.change AS c WHERE c.xid >= first AND c.xid < below ORDER BY c.xid LIMIT 1) < cutoff IS NOT TRUE THEN
    RETURN 0;
  END IF;
  WITH page AS MATERIALIZED (
    SELECT c.ctid AS place, c.xid, c.at FROM slipstream.change AS c
    WHERE c.xid >= first AND c.xid < below
    ORDER BY c.xid LIMIT at_most
  ), young AS MATERIALIZED (
    SELECT min(p.xid::text::bigint)::text::xid8 AS xid FROM page AS p WHERE p.at >= cutoff
  ), gone AS (
    DELETE FROM slipstream.change AS c
    WHERE c.ctid = ANY (ARRAY(SELECT p.place FROM page AS p WHERE p.xid >= (SELECT y.xid FROM young AS y) IS NOT TRUE))
    RETURNING c.xid::text::bigint AS xid
  )
  SELECT count(*), max(g.xid) INTO deleted, newest FROM gone AS g;
  IF deleted > 0 THEN
    UPDATE slipstream.meta SET complete_from = (newest + 1)::text::xid8
    WHERE complete_from < (newest + 1)::text::xid8;
    IF FOUND THEN
      swept := floor(random() * pg_relation_size('slipstream.change') / 8192 / 64) * 64;
      DELETE FROM slipstream.change AS c
      WHERE c.ctid >= concat('(', swept, ',0)')::tid AND c.ctid < concat('(', swept + 64, ',0)')::tid
        AND c.xid < first AND c.at < now() - keep;
    END IF;
  END IF;
  RETURN deleted;
END
`, lockClass, trimLock, shareSQL("keep_bytes"), keptSQL("share"))

// trimNow deletes old rows of the change table in the background if it is time to.
// Every gateway does; the function lets only one work at a time. A failure does not
// fail the stream: the next attempt is a minute later.
func (s *Stream) trimNow(ctx context.Context, now time.Time) {
	if now.Before(s.nextTrim) || s.statement == "" || ctx.Err() != nil {
		return
	}
	s.nextTrim = now.Add(trimInterval)
	s.helpers.Add(1)
	// Ends after the trim or with ctx; Run waits.
	go func() {
		defer s.helpers.Done()
		s.trimming.Lock()
		defer s.trimming.Unlock()
		ctx, cancel := context.WithTimeout(ctx, trimInterval/2)
		defer cancel()
		err := s.trim(ctx)
		if err == nil {
			err = s.retain(ctx)
		}
		if err != nil && ctx.Err() != context.Canceled { // the gateway ends
			s.origin.cfg.Logger.Warn("the change table could not be trimmed", "error", s.origin.wrapError(ctx, "trim", s.origin.loadFrom, err))
		}
	}()
}

// trim calls the function until nothing is left to delete, or another gateway is
// trimming.
func (s *Stream) trim(ctx context.Context) error {
	for {
		var n int64
		err := s.origin.pool.QueryRow(ctx, "SELECT "+trimCall+"($1::pg_catalog.text::pg_catalog.interval, $2::pg_catalog.text::pg_catalog.int8, $3::pg_catalog.text::pg_catalog.int4)",
			fmt.Sprintf("%d seconds", int64(s.origin.cfg.KeepChanges.Seconds())), strconv.FormatInt(s.origin.cfg.KeepBytes, 10), strconv.Itoa(trimRows)).Scan(&n)
		if err != nil || n == 0 {
			return err
		}
		s.trimmed.Add(n)
	}
}
