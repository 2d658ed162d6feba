package postgres

import (
	"context"
	"encoding/binary"
	"errors"
	"fmt"
	"strconv"
	"strings"

	"github.com/jackc/pgx/v5"
	"github.com/jackc/pgx/v5/pgtype"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Load implements [cache.Origin]. All documents, the token and the history they
// were read from come from one statement, so from one snapshot. Before the
// stream has polled, and while the history is not the one that the stream
// follows, there is no token, and the cache stores nothing.
func (o *Origin) Load(ctx context.Context, id cache.ResourceID, ids []string) (cache.Batch, error) {
	all := o.schema.Load().resources
	if int(id) >= len(all) {
		return cache.Batch{}, fmt.Errorf("postgres: load: there is no resource %d", id)
	}
	c := all[id]
	doing := "load " + c.Resource.Name
	if c.Err != nil {
		return cache.Batch{}, schemaFault(doing, c.Err)
	}
	l := newLoad(o, c, ids)
	if len(l.asked) == 0 {
		return l.batch, nil
	}
	conn, err := o.acquire(ctx)
	if err != nil && ctx.Err() != nil {
		// This is not caused by the keys: it is unavailable, because otherwise the
		// cache would retry in halves and make the shortage worse.
		return cache.Batch{}, fmt.Errorf("postgres: %s (%s): none of %d connections became free: %w: %w",
			doing, o.loadFrom.where(), o.cfg.Connections, cache.ErrUnavailable, context.Cause(ctx))
	}
	if err != nil {
		return cache.Batch{}, o.wrapError(ctx, doing, o.loadFrom, err)
	}
	defer conn.Release()
	if err := l.run(ctx, conn.Conn()); err != nil {
		if errors.Is(err, errOldPrimary) {
			o.pool.Reset() // all connections lead to the same server
		}
		return cache.Batch{}, o.wrapError(ctx, doing, o.loadFrom, err)
	}
	return l.batch, nil
}

// load is one load in progress.
type load struct {
	origin *Origin
	c      *compiled
	batch  cache.Batch
	asked  []int  // the index in ids of each key that is loaded
	text   string // of the load statement
	args   []any  // of it
	header string
}

// newLoad splits the ids into the statement's parameters. A malformed id gets its error and is
// not loaded.
func newLoad(o *Origin, c *compiled, ids []string) *load {
	l := &load{origin: o, c: c, text: c.load, batch: cache.Batch{Docs: make([]cache.Loaded, len(ids))}}
	arrays := make([][]string, len(c.Key))
	for i, id := range ids {
		segments, err := resource.Split(c.Key, id)
		if err != nil {
			l.batch.Docs[i].Err = err
			continue
		}
		l.asked = append(l.asked, i)
		for j, s := range segments {
			arrays[j] = append(arrays[j], s)
		}
	}
	one := len(l.asked) == 1 && c.loadOne != ""
	if one {
		l.text = c.loadOne
	}
	l.args = make([]any, 0, len(arrays)+1)
	for _, a := range arrays {
		if one {
			l.args = append(l.args, a[0])
		} else {
			l.args = append(l.args, a)
		}
	}
	l.args = append(l.args, int64(o.cfg.MaxDocument))
	return l
}

func (l *load) run(ctx context.Context, conn *pgx.Conn) error {
	// Documents are read directly from the buffer of the driver.
	rows, err := conn.Query(ctx, l.text, l.args...)
	if err != nil {
		return err
	}
	defer rows.Close()
	seen := make([]bool, len(l.asked))
	for rows.Next() {
		place, err := placeOf(rows)
		if err != nil {
			return err
		}
		body := rows.RawValues()[1]
		switch {
		case place == 0:
			l.header = string(body)
		case place < 0 || place > len(l.asked):
			return fmt.Errorf("a document for key %d of %d", place, len(l.asked))
		default:
			l.add(l.asked[place-1], body, seen[place-1])
			seen[place-1] = true
		}
	}
	if err := rows.Err(); err != nil {
		return err
	}
	return l.judge()
}

// placeOf reads the first column of a row, which is binary or text depending on
// the query mode.
func placeOf(rows pgx.Rows) (int, error) {
	raw := rows.RawValues()[0]
	if rows.FieldDescriptions()[0].Format == pgtype.BinaryFormatCode && len(raw) == 4 {
		return int(int32(binary.BigEndian.Uint32(raw))), nil
	}
	return strconv.Atoi(string(raw))
}

// add adds the document of the i-th id; body belongs to the driver.
func (l *load) add(i int, body []byte, again bool) {
	doc := &l.batch.Docs[i]
	switch {
	case again:
		*doc = cache.Loaded{Err: fmt.Errorf("postgres: load %s: two rows have the same key; expected a unique index over the key", l.c.Resource.Name)}
	case body == nil:
		doc.Err = fmt.Errorf("postgres: a document of %s has more than %d bytes: %w", l.c.Resource.Name, l.origin.cfg.MaxDocument, cache.ErrTooLarge)
	default:
		// append uses the whole size class, so that the capacity, which the memory
		// tier charges, is the actual size of the allocation.
		doc.Body = append([]byte(nil), body...)
	}
}

// judge sets the token if the documents are of the history that the stream
// follows. A load from a former primary is an error: it may hold what was never
// committed in the surviving history.
func (l *load) judge() error {
	snapshot, from, err := parseHeader(l.header)
	if err != nil {
		return err
	}
	known := l.origin.history.Load()
	if line := l.origin.lineage.Load(); line != nil && from.timeline < line.timeline {
		return errOldPrimary // also before the first poll of the stream
	}
	switch {
	case known == nil && from.incarnation == "":
		// The changes are not followed, and cannot be.
	case known == nil:
		l.origin.wakeStream()
	case from.timeline < known.timeline:
		return errOldPrimary
	case from != *known || from.incarnation == "":
		l.origin.wakeStream()
	default:
		l.batch.Snapshot = snapshot
	}
	return nil
}

// parseHeader reads the text of [header]: "xmin:xmax:xip,xip/timeline/incarnation/oid",
// with an empty incarnation if there is none.
func parseHeader(text string) (cache.Snapshot, history, error) {
	parts := strings.Split(text, "/")
	if len(parts) != 4 || len(parts[1]) != 8 || parts[3] == "" {
		return cache.Snapshot{}, history{}, fmt.Errorf("header %.80q; expected snapshot/timeline/incarnation/database", text)
	}
	h := history{timeline: parts[1], incarnation: parts[2], database: parts[3]}
	if _, err := strconv.ParseUint(h.timeline, 16, 32); err != nil {
		return cache.Snapshot{}, history{}, fmt.Errorf("timeline %q; expected eight hexadecimal digits", h.timeline)
	}
	snapshot, err := parseSnapshot(parts[0])
	return snapshot, h, err
}

// parseSnapshot reads the text of a pg_snapshot, "xmin:xmax:xip,xip".
func parseSnapshot(text string) (s cache.Snapshot, err error) {
	wrong := fmt.Errorf("snapshot %.80q; expected xmin:xmax:xip,xip", text)
	parts := strings.Split(text, ":")
	if len(parts) != 3 {
		return s, wrong
	}
	number := func(digits string) cache.Tx {
		n, parseErr := strconv.ParseUint(digits, 10, 64)
		if parseErr != nil {
			err = wrong
		}
		return cache.Tx(n)
	}
	s.XMin, s.XMax = number(parts[0]), number(parts[1])
	if parts[2] != "" {
		for xip := range strings.SplitSeq(parts[2], ",") {
			s.InProgress = append(s.InProgress, number(xip))
		}
	}
	if err != nil {
		return cache.Snapshot{}, err
	}
	lower := s.XMin
	for i, xip := range s.InProgress {
		if xip < lower || xip >= s.XMax || i > 0 && xip == lower {
			return cache.Snapshot{}, wrong
		}
		lower = xip
	}
	if s.XMin == 0 || s.XMin > s.XMax {
		return cache.Snapshot{}, wrong
	}
	return s, nil
}

// wakeStream makes the stream poll and check immediately. It never blocks.
func (o *Origin) wakeStream() {
	select {
	case o.wake <- struct{}{}:
	default:
	}
}
