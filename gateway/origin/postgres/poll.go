package postgres

import (
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
)

// maxChanges is how many rows one poll goes through. More, such as after a long stop,
// are quicker to load again than to go through: the resources are flushed. Rows
// are handed on as they arrive, so the number bounds time and not memory.
const maxChanges = 200_000

// Columns of the changes statement. All are text, which is the same in every
// protocol mode of the driver.
const (
	columnSource = iota // "" in the first row, which is the header
	columnKey
	columnXid
	columnAge // microseconds since the row was written
	columns
)

// changesStatement returns the text of the statement that a poll sends: $1 is
// the last snapshot's xmax, $2 its transactions in progress, $3 and $4 the witness.
// The first row is the header: its key is the floor of the change table, its xid the
// number of rows read, its age what parsePollHead reads.
//
// A row is visible now and was not in the last snapshot exactly if its xid is at
// or above that snapshot's xmax, or was in progress in it; both are scans of the
// index on xid. Everything is one statement, so the keys of documents are derived
// in the snapshot that shows the change.
func changesStatement(s *schema) string {
	var direct []string
	var branches strings.Builder
	derived := make(map[string]bool) // by name and statement: one that replaces another may have the same
	for _, c := range s.resources {
		if c.err != nil {
			continue
		}
		for _, source := range c.sources {
			if source.derive == "" {
				direct = append(direct, quoteText(source.recorded))
				continue
			}
			if derived[source.recorded+"\n"+source.derive] {
				continue
			}
			derived[source.recorded+"\n"+source.derive] = true
			// LATERAL and OFFSET 0 keep the derivation a nested loop over
			// the changed rows: the planner, which cannot know that there are a
			// few, would otherwise hash whole tables forty times a second.
			fmt.Fprintf(&branches, `
UNION ALL (SELECT c.source, d.key, c.xid::pg_catalog.text, c.age
FROM c CROSS JOIN LATERAL (SELECT q.key FROM (%s) AS q(key) OFFSET 0) AS d
WHERE c.source OPERATOR(pg_catalog.=) %s AND c.key IS NOT NULL LIMIT %d)`, source.derive, quoteText(source.recorded), maxChanges+1)
		}
	}
	// What names every document needs no derivation, whichever source it is of.
	where := "c.key IS NULL"
	if len(direct) > 0 {
		where += " OR c.source OPERATOR(pg_catalog.=) ANY (ARRAY[" + strings.Join(direct, ", ") + "]::pg_catalog.text[])"
	}
	// ORDER BY and LIMIT keep the first scan one of the index, also while the
	// table has no statistics or the plan knows no parameters.
	return fmt.Sprintf(`WITH c AS MATERIALIZED (
	SELECT r.source, r.key, r.xid, r.at, r.place, (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) r.at)
		OPERATOR(pg_catalog.*) '1e6'::pg_catalog.float8)::pg_catalog.int8::pg_catalog.text AS age
	FROM (
		(SELECT source, key, xid, at, ctid AS place FROM slipstream.change WHERE xid OPERATOR(pg_catalog.>=) $1::pg_catalog.text::pg_catalog.xid8 ORDER BY xid LIMIT %d)
		UNION ALL
		SELECT source, key, xid, at, ctid FROM slipstream.change WHERE xid OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.text[]::pg_catalog.xid8[])
	) AS r LIMIT %d
)
SELECT '', (SELECT complete_from::pg_catalog.text FROM slipstream.meta), (SELECT pg_catalog.count(*)::pg_catalog.text FROM c),
	pg_catalog.concat_ws('/', %s, %s, %s, COALESCE((SELECT %s FROM c AS n ORDER BY n.xid DESC, n.place LIMIT 1), ''))
UNION ALL SELECT c.source, c.key, c.xid::pg_catalog.text, c.age FROM c WHERE %s%s`,
		maxChanges+1, maxChanges+1, header(true), micros("pg_catalog.clock_timestamp()"), witnessExists, witnessText("n"), where, branches.String())
}

// changesArguments are the parameters of the changes statement.
func changesArguments(last cache.Snapshot, witness cache.Witness) []any {
	running := make([]string, len(last.InProgress))
	for i, tx := range last.InProgress {
		running[i] = strconv.FormatUint(uint64(tx), 10)
	}
	return append([]any{strconv.FormatUint(uint64(last.XMax), 10), running}, witnessArguments(witness)...)
}

// pollHead is what the first row of a poll says.
type pollHead struct {
	snapshot cache.Snapshot
	history  history
	// floor: changes of transactions at or above it are all in the table. 0 if
	// there is no row that says so.
	floor cache.Tx
	rows  int // of the change table
	// clock is the time of the server's clock, since 1970.
	clock time.Duration
	// witnessed says that the change table has the witness that was asked for.
	witnessed bool
	newest    cache.Witness // of the rows read, the zero value if there are none
}

// parsePollHead reads the first row of the changes statement.
func parsePollHead(values [][]byte) (head pollHead, err error) {
	text := string(values[columnAge])
	parts := strings.Split(text, "/")
	if len(parts) != 7 {
		return head, fmt.Errorf("header %.120q; expected snapshot/timeline/incarnation/database/clock/witnessed/newest", text)
	}
	if head.snapshot, head.history, err = parseHeader(strings.Join(parts[:4], "/")); err != nil {
		return head, err
	}
	clock, err := strconv.ParseInt(parts[4], 10, 64)
	if err != nil {
		return head, fmt.Errorf("the server's clock: %w", err)
	}
	head.clock, head.witnessed = time.Duration(clock)*time.Microsecond, parts[5] == "t"
	if head.newest, err = parseWitness(parts[6]); err != nil {
		return head, err
	}
	floor, err := strconv.ParseUint(string(values[columnKey]), 10, 64)
	if err != nil {
		return head, fmt.Errorf("slipstream.meta has no row; run slipstream db apply: %w", err)
	}
	head.floor = cache.Tx(floor)
	head.rows, err = strconv.Atoi(string(values[columnXid]))
	return head, err
}

// eventReader turns rows of the changes statement into events of the cache.
// Owned by the stream; its memory is used again by the next poll.
type eventReader struct {
	// Immutable after newEventReader.
	// sources maps the names of sources in the change table to the indices of their
	// resources: several while one replaces another.
	sources map[string][]int
	schema  *schema

	// Owned by the stream.
	events  []cache.Event
	flushAt []int // per resource: one past its All event in events, 0 if none
}

func newEventReader(s *schema) *eventReader {
	r := &eventReader{sources: make(map[string][]int), schema: s, flushAt: make([]int, len(s.resources))}
	for i, c := range s.resources {
		if s.set.Retired[i] {
			continue
		}
		for _, source := range c.sources {
			if known := r.sources[source.recorded]; !slices.Contains(known, i) {
				r.sources[source.recorded] = append(known, i)
			}
		}
	}
	return r
}

// eventsAtOnce is how many events are handed to the cache in one call, and so how
// many are in memory at once.
const eventsAtOnce = 10_000

// add takes one row. The row's memory is the driver's.
func (r *eventReader) add(values [][]byte) (age time.Duration, err error) {
	micros, err := strconv.ParseInt(string(values[columnAge]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("age of a change: %w", err)
	}
	age = time.Duration(micros) * time.Microsecond
	// A source that this configuration does not know is that of another definition.
	of := r.sources[string(values[columnSource])]
	if of == nil {
		return age, nil
	}
	number, err := strconv.ParseUint(string(values[columnXid]), 10, 64)
	if err != nil {
		return age, fmt.Errorf("transaction of a change: %w", err)
	}
	tx := cache.Tx(number)
	for _, i := range of {
		if values[columnKey] == nil {
			r.flush(i, tx)
		} else if id, ok := decodeKey(r.schema.resources[i].key, string(values[columnKey])); ok {
			r.events = append(r.events, cache.Event{Key: cache.Key{Resource: cache.ResourceID(i), ID: id}, Tx: tx})
		} else if !nameless(r.schema.resources[i].key, string(values[columnKey])) {
			// No trigger writes such a text, so which document is meant is unknown.
			r.flush(i, tx)
		}
	}
	return age, nil
}

// flush adds the event that drops a whole resource. All transactions of such
// events count, so a later one replaces an earlier only if it is the same.
func (r *eventReader) flush(resource int, tx cache.Tx) {
	if at := r.flushAt[resource]; at > 0 && r.events[at-1].Tx == tx {
		return
	}
	r.events = append(r.events, cache.Event{Key: cache.Key{Resource: cache.ResourceID(resource)}, Tx: tx, All: true})
	r.flushAt[resource] = len(r.events)
}

// take returns the events and forgets them once done with.
func (r *eventReader) take(apply func([]cache.Event)) {
	if len(r.events) == 0 {
		return
	}
	apply(r.events)
	clear(r.events)
	r.events = r.events[:0]
	clear(r.flushAt)
}

// readChanges reads the answer of the changes statement. judge sees the header
// before any event is applied and may refuse it; apply gets the events in pieces.
func readChanges(rows pgx.Rows, reader *eventReader, judge func(pollHead) error, apply func([]cache.Event), seen func(age time.Duration)) (pollHead, error) {
	defer rows.Close()
	var head pollHead
	first, received := true, 0
	for rows.Next() {
		values := rows.RawValues()
		if len(values) != columns {
			return head, fmt.Errorf("a row of %d columns, expected %d", len(values), columns)
		}
		if first {
			first = false
			if len(values[columnSource]) > 0 {
				return head, fmt.Errorf("the first row is not the header")
			}
			var err error
			if head, err = parsePollHead(values); err == nil {
				err = judge(head)
			}
			if err != nil {
				return head, err
			}
			continue
		}
		// One link may lead to a million documents: a currency, a tax rate.
		if received++; received > maxChanges {
			head.rows = max(head.rows, received)
			continue
		}
		age, err := reader.add(values)
		if err != nil {
			return head, err
		}
		seen(age)
		if len(reader.events) >= eventsAtOnce {
			reader.take(apply)
		}
	}
	if err := rows.Err(); err != nil {
		return head, err
	}
	if first {
		return head, fmt.Errorf("the statement gave no row")
	}
	reader.take(apply)
	return head, nil
}
