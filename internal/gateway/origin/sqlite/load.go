package sqlite

import (
	"context"
	"encoding/hex"
	"errors"
	"fmt"
	"os"
	"strconv"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
)

// Load implements [cache.Origin]. All documents and the token come from one
// read transaction, so no document is torn and the token is exact. Before a
// stream has opened the database there is no token, and the cache stores nothing.
func (o *Origin) Load(ctx context.Context, id cache.ResourceID, ids []string) (cache.Batch, error) {
	resources := o.set.Load().Resources
	if int(id) >= len(resources) {
		return cache.Batch{}, fmt.Errorf("sqlite: load: there is no resource %d", id)
	}
	doing := "load " + resources[id].Name
	// The stream finds a replaced file with its next poll; two polls are enough
	// time.
	const attemptsPerPoll = 4
	for attempt := 1; ; attempt++ {
		batch := cache.Batch{Docs: make([]cache.Loaded, len(ids))}
		err := o.withConn(ctx, doing, func(c *conn) error {
			return c.read(func() error { return o.loadAll(c, int(id), ids, &batch) })
		})
		if err == nil {
			return batch, nil
		}
		if !errors.Is(err, errMoved) || attempt > 2*attemptsPerPoll {
			return cache.Batch{}, err
		}
		select {
		case <-ctx.Done():
			return cache.Batch{}, err
		case <-time.After(o.cfg.PollInterval / attemptsPerPoll):
		}
	}
}

// loadAll reads the documents in the transaction that is open on c.
//
// It refuses a file that the stream does not follow: a file that was at the path
// between two polls, and is gone again, leaves nothing that the stream could
// notice, so its documents must neither be stored nor be shared with callers that
// trust the horizon. One check is enough, because a connection keeps its file and
// the check comes after the load began. A stream that switches to another file
// later flushes before its horizon moves (see page), and that refuses and detaches
// every load that began before.
//
// For the same reason, a load that finds that the stream follows no file yet began
// before the first flush: no caller that trusts a horizon will join it. It answers
// without a token.
func (o *Origin) loadAll(c *conn, id int, ids []string, batch *cache.Batch) error {
	followed := o.followed.Load()
	if followed != nil && !os.SameFile(*followed, c.file) {
		return errMoved
	}
	if err := o.adopt(c); err != nil {
		return err
	}
	if err := c.schema.resources[id].Err; err != nil {
		return err
	}
	newest, err := c.newestChange()
	if err != nil {
		return err
	}
	if followed != nil {
		batch.Snapshot = cache.UpTo(cache.Tx(newest))
	}
	l := c.loaders[id]
	if l == nil {
		if l, err = newLoader(c.Conn, c.schema.resources[id]); err != nil {
			return err
		}
		c.loaders[id] = l
	}
	b := builder{buf: c.body[:0], max: o.cfg.MaxDocument}
	for i, key := range ids {
		b.buf = b.buf[:0]
		found, err := l.document(&b, key)
		switch {
		case errors.Is(err, cache.ErrTooLarge), errors.Is(err, sqlite3.TOOBIG):
			batch.Docs[i].Err = fmt.Errorf("sqlite: document %q of %s has more than %d bytes: %w",
				key, c.schema.set.Resources[id].Name, o.cfg.MaxDocument, cache.ErrTooLarge)
		case isKeyError(err):
			batch.Docs[i].Err = err
		case err != nil:
			return err
		case found:
			// append uses the whole size class, so that the capacity, which the
			// memory tier charges, is the actual size of the allocation.
			batch.Docs[i].Body = append([]byte(nil), b.buf...)
		}
	}
	c.body = b.buf
	if cap(c.body) > maxIdleBody {
		c.body = nil
	}
	return nil
}

func isKeyError(err error) bool {
	var keyErr *resource.KeyError
	return errors.As(err, &keyErr)
}

// loader is the prepared statements of one resource on one connection.
type loader struct {
	key  []resource.KeyColumn
	root *rows
}

// rows is the statement of one node: the root row of a key, or the rows of a
// child that belong to one row of its parent.
//
// There is one statement per node and parent row, not one per level for the whole
// batch: SQLite is in the process, a run of a prepared statement costs about 2 us,
// and in return rows arrive in the order of the document, need no sorting or
// matching in Go, and can stop when the document is too large.
type rows struct {
	stmt     *sqlite3.Stmt
	fields   []field
	identity int // how many columns after the fields name the row for its children
	children []nested
}

type nested struct {
	prefix string // the text before the list: `,"emps":`
	rows   *rows
}

func newLoader(conn *sqlite3.Conn, c *compiled) (*loader, error) {
	root, err := newRows(conn, c, c.Root)
	if err != nil {
		return nil, err
	}
	return &loader{key: c.Key, root: root}, nil
}

func newRows(conn *sqlite3.Conn, c *compiled, n *node) (*rows, error) {
	r := &rows{}
	for i, at := range n.Columns {
		r.fields = append(r.fields, newField(&n.Table.columns[at], c.Resource.BigintAsString, i == 0))
	}
	if len(n.Children) > 0 {
		r.identity = len(identity(n))
	}
	sql := selectRows(c, n)
	stmt, _, err := conn.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, fmt.Errorf("%w in %s", err, sql)
	}
	r.stmt = stmt
	for i, child := range n.Children {
		sub, err := newRows(conn, c, child.Node)
		if err != nil {
			r.close()
			return nil, err
		}
		r.children = append(r.children, nested{memberPrefix(child.Name, i == 0 && len(n.Columns) == 0), sub})
	}
	return r, nil
}

func (l *loader) close() {
	if l != nil {
		l.root.close()
	}
}

func (r *rows) close() {
	_ = r.stmt.Close()
	for _, child := range r.children {
		child.rows.close()
	}
}

// identity lists the columns that name a row of the node: the rowid, or the
// primary key of a table without one.
func identity(n *node) []indexColumn {
	if !n.Table.withoutRowid {
		return []indexColumn{{column: -1, collation: "BINARY"}}
	}
	return n.Table.primaryKey
}

func columnName(t *table, column int) string {
	if column < 0 {
		return quoteName(t.rowid)
	}
	return quoteName(t.columns[column].name)
}

// selectRows writes the statement of a node. A child is found from the row of its
// parent by the declared comparison, column with column: a value that went through
// Go would have lost its column's affinity.
func selectRows(c *compiled, n *node) string {
	var b strings.Builder
	row := alias(n)
	b.WriteString("SELECT ")
	for i, at := range n.Columns {
		if i > 0 {
			b.WriteString(", ")
		}
		b.WriteString(row + "." + columnName(n.Table, at))
	}
	if len(n.Children) > 0 {
		for i, ic := range identity(n) {
			if i > 0 || len(n.Columns) > 0 {
				b.WriteString(", ")
			}
			b.WriteString(row + "." + columnName(n.Table, ic.column))
		}
	}
	if n.Parent == nil {
		fmt.Fprintf(&b, " FROM %s AS %s WHERE ", quoteName(n.Table.name), row)
		for i, at := range c.KeyAt {
			if i > 0 {
				b.WriteString(" AND ")
			}
			fmt.Fprintf(&b, "%s.%s = ?", row, columnName(n.Table, at))
		}
		return b.String()
	}
	up := alias(n.Parent)
	fmt.Fprintf(&b, " FROM %s AS %s CROSS JOIN %s AS %s WHERE ",
		quoteName(n.Parent.Table.name), up, quoteName(n.Table.name), row)
	for i, ic := range identity(n.Parent) {
		if i > 0 {
			b.WriteString(" AND ")
		}
		fmt.Fprintf(&b, "%s.%s COLLATE %s = ?", up, columnName(n.Parent.Table, ic.column), quoteName(ic.collation))
	}
	for _, j := range n.On {
		fmt.Fprintf(&b, " AND %s.%s = %s.%s", row, columnName(n.Table, j.Column), up, columnName(n.Parent.Table, j.Parent))
	}
	b.WriteString(orderBy(n))
	return b.String()
}

// orderBy is the declared order; the primary key, then the rowid, decide ties.
func orderBy(n *node) string {
	var terms []string
	for _, o := range n.Order {
		term := alias(n) + "." + quoteName(o.Column)
		if o.Descending {
			term += " DESC"
		}
		terms = append(terms, term)
	}
	for _, ic := range n.Table.primaryKey {
		terms = append(terms, alias(n)+"."+columnName(n.Table, ic.column))
	}
	if !n.Table.withoutRowid && n.Table.rowidAlias < 0 {
		terms = append(terms, alias(n)+"."+columnName(n.Table, -1))
	}
	return " ORDER BY " + strings.Join(terms, ", ")
}

// document appends the document of a key to b; found is false if there is no row.
func (l *loader) document(b *builder, id string) (found bool, err error) {
	r := l.root
	if err := l.bindKey(id); err != nil {
		return false, err
	}
	found = r.stmt.Step()
	if found {
		err = r.row(b)
	} else {
		err = r.stmt.Err()
	}
	if resetErr := r.stmt.Reset(); err == nil {
		err = resetErr
	}
	return found, err
}

func (l *loader) bindKey(id string) error {
	rest := id
	for i, column := range l.key {
		segment := rest
		if i < len(l.key)-1 {
			var ok bool
			if segment, rest, ok = resource.CutID(rest); !ok {
				return &resource.KeyError{Column: column.Name, Expected: "a length and a colon", Input: strconv.Quote(rest)}
			}
		}
		if err := column.Check(segment); err != nil {
			return err
		}
		if err := bindSegment(l.root.stmt, i+1, column.Kind, segment); err != nil {
			return err
		}
	}
	return nil
}

// bindSegment binds a canonical segment as the storage class of its column.
func bindSegment(stmt *sqlite3.Stmt, at int, kind resource.Kind, segment string) error {
	switch kind {
	case resource.Integer:
		n, err := strconv.ParseInt(segment, 10, 64)
		if err != nil {
			return err
		}
		return stmt.BindInt64(at, n)
	case resource.Bytes:
		raw, err := hex.DecodeString(segment)
		if err != nil {
			return err
		}
		return stmt.BindBlob(at, raw)
	default:
		return stmt.BindText(at, segment)
	}
}

// row appends the current row of the statement, with its children.
func (r *rows) row(b *builder) error {
	b.buf = append(b.buf, '{')
	for i := range r.fields {
		if err := r.fields[i].appendTo(b, r.stmt, i); err != nil {
			return err
		}
	}
	for i := range r.children {
		b.buf = append(b.buf, r.children[i].prefix...)
		if err := r.children[i].rows.list(b, r); err != nil {
			return err
		}
	}
	b.buf = append(b.buf, '}')
	return b.check(0)
}

// list appends the rows that belong to the current row of parent.
func (r *rows) list(b *builder, parent *rows) (err error) {
	for i := range parent.identity {
		if err := r.stmt.BindValue(i+1, parent.stmt.ColumnValue(len(parent.fields)+i)); err != nil {
			return err
		}
	}
	b.buf = append(b.buf, '[')
	for n := 0; r.stmt.Step(); n++ {
		if n > 0 {
			b.buf = append(b.buf, ',')
		}
		if err = r.row(b); err != nil {
			break
		}
	}
	if err == nil {
		err = r.stmt.Err()
	}
	if resetErr := r.stmt.Reset(); err == nil {
		err = resetErr
	}
	b.buf = append(b.buf, ']')
	return err
}
