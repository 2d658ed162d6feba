package postgres

import (
	"encoding/hex"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
)

// maxChanges is how many rows one poll applies. If there are more, such as after a long
// stop, it is faster to flush the resources and load again. Rows are passed on as they
// arrive, so the number bounds time and not memory.
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
// the number before the last snapshot's xmax, $2 its transactions in progress, $3 and $4 the witness, $5
// the names of the sources to read. With raw, keys are the bytes of the database's
// encoding in hexadecimal form.
// The first row is the header: its key is the floor of the change table, its xid the
// number of rows read, its age what parsePollHead reads.
//
// A row is visible now and was not in the last snapshot if and only if its xid is at or above that
// snapshot's xmax, or was in progress in it. The statement does not visit rows of transactions that
// are still in progress, which may be millions: of the transactions in progress then it reads those
// that have ended, and it reads the range from the last xmax to the present one in the gaps between
// those in progress now, unless no number lies between them. ORDER BY and LIMIT make each scan one
// of the index on xid, even while the table has no statistics or the plan is generic.
//
// It reads no table of users, so nothing that they lock or declare can hold it up.
func changesStatement(raw bool) string {
	key := "c.key"
	if raw {
		key = "pg_catalog.encode(pg_catalog.convert_to(c.key, pg_catalog.getdatabaseencoding()), 'hex')"
	}
	return fmt.Sprintf(`WITH now AS MATERIALIZED (
	SELECT pg_catalog.pg_current_snapshot() AS snapshot
), bounds AS MATERIALIZED (
	SELECT $1::pg_catalog.text::pg_catalog.xid8 AS xid UNION ALL
	SELECT x.xid FROM now CROSS JOIN LATERAL pg_catalog.pg_snapshot_xip(now.snapshot) AS x(xid) WHERE x.xid OPERATOR(pg_catalog.>) $1::pg_catalog.text::pg_catalog.xid8
), gaps AS MATERIALIZED (
	SELECT b.xid AS low, COALESCE(pg_catalog.lead(b.xid) OVER (ORDER BY b.xid), pg_catalog.pg_snapshot_xmax(now.snapshot)) AS high FROM bounds AS b CROSS JOIN now
), c AS MATERIALIZED (
	SELECT r.source, r.key, r.xid, r.at, r.place, (pg_catalog.date_part('epoch', pg_catalog.clock_timestamp() OPERATOR(pg_catalog.-) r.at)
		OPERATOR(pg_catalog.*) '1e6'::pg_catalog.float8)::pg_catalog.int8::pg_catalog.text AS age
	FROM (
		SELECT e.* FROM gaps AS g CROSS JOIN LATERAL (SELECT source, key, xid, at, ctid AS place FROM slipstream.change
			WHERE xid OPERATOR(pg_catalog.>) g.low AND xid OPERATOR(pg_catalog.<) g.high ORDER BY xid LIMIT %[1]d) AS e
			WHERE g.high::pg_catalog.text::pg_catalog.int8 OPERATOR(pg_catalog.-) g.low::pg_catalog.text::pg_catalog.int8 OPERATOR(pg_catalog.>) 1::pg_catalog.int8
		UNION ALL
		SELECT e.* FROM now CROSS JOIN LATERAL pg_catalog.unnest($2::pg_catalog.text[]::pg_catalog.xid8[]) AS x(xid) CROSS JOIN LATERAL (SELECT source, key, xid, at, ctid AS place FROM slipstream.change
			WHERE xid OPERATOR(pg_catalog.=) x.xid ORDER BY xid LIMIT %[1]d) AS e WHERE pg_catalog.pg_visible_in_snapshot(x.xid, now.snapshot)
	) AS r LIMIT %[1]d
)
SELECT '', (SELECT complete_from::pg_catalog.text FROM slipstream.meta), (SELECT pg_catalog.count(*)::pg_catalog.text FROM c),
	pg_catalog.concat_ws('/', %[2]s, %[3]s, %[4]s, COALESCE((SELECT %[5]s FROM c AS n ORDER BY n.xid DESC, n.place LIMIT 1), ''))
UNION ALL SELECT c.source, %[6]s, c.xid::pg_catalog.text, c.age FROM c WHERE c.source OPERATOR(pg_catalog.=) ANY ($5::pg_catalog.text[])`,
		maxChanges+1, header(true), micros("pg_catalog.clock_timestamp()"), witnessExists, witnessText("n"), key)
}

// sourcesSQL returns the names of the sources that have changed since a snapshot: $1 and
// $2 are as in the changes statement, $3 names the sources that matter.
const sourcesSQL = `SELECT DISTINCT r.source FROM slipstream.change AS r
	WHERE (r.xid OPERATOR(pg_catalog.>) $1::pg_catalog.text::pg_catalog.xid8 OR r.xid OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.text[]::pg_catalog.xid8[]))
	AND r.source OPERATOR(pg_catalog.=) ANY ($3::pg_catalog.text[])`

// changesArguments are the first four parameters of the changes statement.
func changesArguments(last cache.Snapshot, witness cache.Witness) []any {
	running := make([]string, len(last.InProgress))
	for i, tx := range last.InProgress {
		running[i] = strconv.FormatUint(uint64(tx), 10)
	}
	before := max(last.XMax, 1) - 1
	return append([]any{strconv.FormatUint(uint64(before), 10), running}, witnessArguments(witness)...)
}

// pollHead is the first row of a poll.
type pollHead struct {
	snapshot cache.Snapshot
	history  history
	// floor: changes of transactions at or above it are all in the table. 0 if
	// there is no such row.
	floor cache.Tx
	rows  int // of the change table
	// clock is the time of the server's clock, since 1970.
	clock time.Duration
	// witnessed says that the change table has the requested witness.
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

// listener is a resource that is concerned by rows of a source.
type listener struct {
	resource int
	derive   string // the statement that leads from what is recorded to keys of documents, "" if it is the key
}

// eventReader turns rows of the changes statement into events of the cache.
// Owned by the stream; its memory is reused by the next poll.
type eventReader struct {
	// Immutable after newEventReader.
	// listeners are by the names of sources in the change table: several while one
	// resource replaces another.
	listeners map[string][]listener
	names     []string // of the sources, as the parameter of the changes statement
	schema    *schema

	// Owned by the stream.
	events  []cache.Event
	flushAt []int           // per resource: one past its All event in events, 0 if none
	links   []*links        // what has to be derived, by resource; nil if nothing is
	linked  int             // how many rows that is
	mute    []bool          // resources whose links are not wanted
	raw     bool            // keys arrive as bytes in hexadecimal form
	ages    []time.Duration // of the rows
}

func newEventReader(s *schema) *eventReader {
	n := len(s.resources)
	r := &eventReader{listeners: make(map[string][]listener), schema: s, flushAt: make([]int, n), links: make([]*links, n), mute: make([]bool, n)}
	for i, c := range s.resources {
		if s.set.Retired[i] || c.Err != nil {
			continue
		}
		for _, source := range c.sources {
			l := listener{i, source.derive}
			known := r.listeners[source.recorded]
			if known == nil {
				r.names = append(r.names, source.recorded)
			}
			if !slices.Contains(known, l) {
				r.listeners[source.recorded] = append(known, l)
			}
		}
	}
	return r
}

// eventsAtOnce is how many events are passed to the cache in one call, and so how
// many are in memory at a time.
const eventsAtOnce = 10_000

// add processes one row, whose memory belongs to the driver.
func (r *eventReader) add(values [][]byte) (age time.Duration, err error) {
	micros, err := strconv.ParseInt(string(values[columnAge]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("age of a change: %w", err)
	}
	age = time.Duration(micros) * time.Microsecond
	number, err := strconv.ParseUint(string(values[columnXid]), 10, 64)
	if err != nil {
		return age, fmt.Errorf("transaction of a change: %w", err)
	}
	tx := cache.Tx(number)
	readable := true
	var key string
	if values[columnKey] != nil {
		if key, readable, err = r.keyOf(values[columnKey]); err != nil {
			return age, err
		}
	}
	for _, l := range r.listeners[string(values[columnSource])] {
		c := r.schema.resources[l.resource]
		switch {
		case values[columnKey] == nil || !readable:
			r.flush(l.resource, tx)
		case l.derive != "":
			r.link(l, key, tx)
		default:
			r.document(c, l.resource, key, tx)
		}
	}
	return age, nil
}

// document adds the event of the document that a text names.
func (r *eventReader) document(c *compiled, resource int, text string, tx cache.Tx) {
	if id, ok := decodeKey(c.Key, text); ok {
		r.events = append(r.events, cache.Event{Key: cache.Key{Resource: cache.ResourceID(resource), ID: id}, Tx: tx})
	} else if !nameless(c.Key, text) {
		// No trigger writes such a text, so the document is unknown.
		r.flush(resource, tx)
	}
}

// keyOf returns the recorded text; readable is false if its bytes are invalid in UTF-8,
// or mean something else than in the encoding of the database.
func (r *eventReader) keyOf(text []byte) (key string, readable bool, err error) {
	if !r.raw {
		return string(text), true, nil
	}
	bytes, err := hex.DecodeString(string(text))
	if err != nil {
		return "", false, fmt.Errorf("key of a change: %w", err)
	}
	ascii := !slices.ContainsFunc(bytes, func(b byte) bool { return b >= utf8.RuneSelf })
	return string(bytes), ascii, nil
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

// take returns the events and removes them.
func (r *eventReader) take(apply func([]cache.Event)) {
	if len(r.events) == 0 {
		return
	}
	apply(r.events)
	clear(r.events)
	r.events = r.events[:0]
	clear(r.flushAt)
}

// forgetEvents drops events that must not be applied.
func (r *eventReader) forgetEvents() { r.take(func([]cache.Event) {}) }

// forget drops what an earlier poll has left.
func (r *eventReader) forget() {
	r.forgetEvents()
	clear(r.links)
	r.linked, r.ages = 0, r.ages[:0]
}

// readChanges reads the result of the changes statement. judge sees the header
// before any event is applied and may refuse it; apply gets the events in pieces.
func readChanges(rows pgx.Rows, reader *eventReader, judge func(pollHead) error, apply func([]cache.Event)) (pollHead, error) {
	defer rows.Close()
	var head pollHead
	for first := true; rows.Next(); first = false {
		values := rows.RawValues()
		if len(values) != columns {
			return head, fmt.Errorf("a row of %d columns, expected %d", len(values), columns)
		}
		if first {
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
		age, err := reader.add(values)
		if err != nil {
			return head, err
		}
		reader.ages = append(reader.ages, age)
		if len(reader.events) >= eventsAtOnce {
			reader.take(apply)
		}
	}
	if err := rows.Err(); err != nil {
		return head, err
	}
	if head.snapshot.XMax == 0 {
		return head, fmt.Errorf("the statement returned no row")
	}
	reader.take(apply)
	return head, nil
}
