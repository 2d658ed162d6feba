package postgres

import (
	"context"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/cache"
)

// Timeline and incarnation survive a clean stop, so they cannot distinguish a cluster
// from a copy that was made while it was stopped, and transaction IDs go backward only
// for a short time after such a copy is started. What a copy cannot have is the newest
// change that the stream applied, at the microsecond at which it was recorded: the
// witness. Trimming never deletes the rows of the newest transaction.
//
// Of these the witness is the one that the index of the change table has first. Every
// poll looks it up, and would otherwise scan all rows of a transaction that changed a
// hundred thousand.

// micros is the value of a timestamptz expression, in microseconds since 1970.
func micros(expression string) string {
	return "(pg_catalog.extract('epoch', " + expression + ") OPERATOR(pg_catalog.*) 1000000::pg_catalog.numeric)::pg_catalog.int8"
}

// witnessExists tests whether the row of $3 and $4 exists. It is the first row from its
// transaction on, unless the table was rewritten since: LIMIT makes this an index lookup,
// regardless of the statistics, and then nothing else is read.
var witnessExists = "(EXISTS (SELECT FROM (SELECT w.xid, w.at FROM slipstream.change AS w" +
	" WHERE w.xid OPERATOR(pg_catalog.>=) $3::pg_catalog.text::pg_catalog.xid8 ORDER BY w.xid LIMIT 1) AS w WHERE " + isWitness +
	") OR EXISTS (SELECT FROM slipstream.change AS w WHERE " + isWitness + "))"

var isWitness = "w.xid OPERATOR(pg_catalog.=) $3::pg_catalog.text::pg_catalog.xid8 AND " + micros("w.at") + " OPERATOR(pg_catalog.=) $4::pg_catalog.text::pg_catalog.int8"

// witnessText is a row of the change table as parseWitness reads it.
func witnessText(row string) string {
	return "pg_catalog.concat_ws('@', " + row + ".xid, " + micros(row+".at") + ")"
}

func witnessArguments(w cache.Witness) []any {
	return []any{strconv.FormatUint(uint64(w.Tx), 10), strconv.FormatInt(w.Nonce, 10)}
}

// parseWitness reads "xid@microseconds", or "" for none.
func parseWitness(text string) (w cache.Witness, err error) {
	if text == "" {
		return w, nil
	}
	xid, at, _ := strings.Cut(text, "@")
	number, err := strconv.ParseUint(xid, 10, 64)
	if err == nil {
		w.Tx = cache.Tx(number)
		w.Nonce, err = strconv.ParseInt(at, 10, 64)
	}
	if err != nil {
		return cache.Witness{}, fmt.Errorf("witness %.80q; expected xid@microseconds", text)
	}
	return w, nil
}

// testimony is the evidence of the change table about a position.
type testimony int

const (
	// confirmed: the witness of the position is there.
	confirmed testimony = iota
	// trimmedAway: the witness is gone, and so may be rows that were not read.
	trimmedAway
	// denied: the change table is not the one that the position was read from.
	denied
)

// position is the position of the stream: every change visible in seen was applied.
type position struct {
	seen    cache.Snapshot
	floor   cache.Tx
	witness cache.Witness
}

// testimonySQL compares the change table with a position: $1 to $4 are those of the
// changes statement. The second column tells whether a row exists that the position
// has seen.
var testimonySQL = "SELECT " + witnessExists + `, EXISTS (SELECT FROM slipstream.change AS s
	WHERE s.xid OPERATOR(pg_catalog.<=) $1::pg_catalog.text::pg_catalog.xid8 AND NOT s.xid OPERATOR(pg_catalog.=) ANY ($2::pg_catalog.text[]::pg_catalog.xid8[])),
	COALESCE((SELECT m.complete_from::pg_catalog.text FROM slipstream.meta AS m), '0')`

// testify compares the change table with a position.
//
// A position without a witness is one of an empty change table: then no row that it
// has seen may exist. That holds for positions that earlier releases stored without
// a witness, too: unless the table was empty, they are denied.
func testify(ctx context.Context, tx pgx.Tx, p position) (testimony, error) {
	var exists, seen bool
	var text string
	if err := tx.QueryRow(ctx, testimonySQL, changesArguments(p.seen, p.witness)...).Scan(&exists, &seen, &text); err != nil {
		return denied, err
	}
	number, err := strconv.ParseUint(text, 10, 64)
	if err != nil {
		return denied, fmt.Errorf("complete_from %q: %w", text, err)
	}
	floor := cache.Tx(number)
	switch {
	case p.witness == cache.Witness{}:
		if seen {
			return denied, nil
		}
		if floor != p.floor {
			return trimmedAway, nil
		}
	case exists:
	case p.witness.Tx < floor:
		return trimmedAway, nil
	default:
		return denied, nil
	}
	return confirmed, nil
}

// newestSQL returns the newest row of the change table and the floor.
var newestSQL = "SELECT COALESCE((SELECT " + witnessText("n") + ` FROM slipstream.change AS n ORDER BY n.xid DESC, n.ctid LIMIT 1), ''),
	COALESCE((SELECT m.complete_from::pg_catalog.text FROM slipstream.meta AS m), '0')`

// readNewest reads the witness and the floor that a survey starts from.
func (found *survey) readNewest(ctx context.Context, tx pgx.Tx) error {
	var newest, floor string
	if err := tx.QueryRow(ctx, newestSQL).Scan(&newest, &floor); err != nil {
		return err
	}
	number, err := strconv.ParseUint(floor, 10, 64)
	if err != nil {
		return fmt.Errorf("complete_from %q: %w", floor, err)
	}
	found.floor = cache.Tx(number)
	found.newest, err = parseWitness(newest)
	return err
}
