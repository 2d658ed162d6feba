package sqlite

import (
	"errors"

	"github.com/ncruces/go-sqlite3"
)

// tracker holds the statements over the change table on one connection, prepared
// when first used. The zero value is ready to use.
type tracker struct {
	newest, nonce, after, mark *sqlite3.Stmt
}

func (t *tracker) close() {
	for _, stmt := range []*sqlite3.Stmt{t.newest, t.nonce, t.after, t.mark} {
		_ = stmt.Close() // repeats the error of its last step
	}
	*t = tracker{}
}

func (c *conn) lazily(stmt **sqlite3.Stmt, sql string) (*sqlite3.Stmt, error) {
	if *stmt != nil {
		return *stmt, nil
	}
	prepared, _, err := c.PrepareFlags(sql, sqlite3.PREPARE_PERSISTENT)
	if err != nil {
		return nil, err
	}
	*stmt = prepared
	return prepared, nil
}

// newestChange is the token: the id of the newest row of the change table, or 0 if
// there is no table or no row.
func (c *conn) newestChange() (int64, error) {
	if !c.schema.tracked {
		return 0, nil
	}
	stmt, err := c.lazily(&c.tracker.newest, `SELECT max(id) FROM "slipstream_change"`)
	if err != nil {
		return 0, err
	}
	return firstInt(stmt)
}

// newestMark returns the newest row of the change table, or the zero mark if there is none.
func (c *conn) newestMark() (mark changeMark, err error) {
	stmt, err := c.lazily(&c.tracker.mark, `SELECT id, nonce FROM "slipstream_change" ORDER BY id DESC LIMIT 1`)
	if err != nil {
		return mark, err
	}
	if stmt.Step() {
		mark = changeMark{id: stmt.ColumnInt64(0), nonce: nonceFrom(stmt, 1)}
	}
	return mark, errors.Join(stmt.Err(), stmt.Reset())
}

// nonceOf returns the nonce of a row of the change table.
func (c *conn) nonceOf(id int64) (nonce [8]byte, ok bool, err error) {
	stmt, err := c.lazily(&c.tracker.nonce, `SELECT nonce FROM "slipstream_change" WHERE id = ?`)
	if err != nil {
		return nonce, false, err
	}
	if err := stmt.BindInt64(1, id); err != nil {
		return nonce, false, err
	}
	if ok = stmt.Step(); ok {
		nonce = nonceFrom(stmt, 0)
	}
	return nonce, ok, errors.Join(stmt.Err(), stmt.Reset())
}

// changesAfter returns a statement that returns id, nonce, resource and key of at
// most limit rows after id, oldest first. The caller resets it. A key longer than
// any that can be addressed is returned as NULL, which means all keys.
func (c *conn) changesAfter(id int64, limit int) (*sqlite3.Stmt, error) {
	stmt, err := c.lazily(&c.tracker.after,
		`SELECT id, nonce, resource, CASE WHEN octet_length(key) <= 65536 THEN key END
		FROM "slipstream_change" WHERE id > ? ORDER BY id LIMIT ?`)
	if err != nil {
		return nil, err
	}
	if err := stmt.BindInt64(1, id); err != nil {
		return nil, err
	}
	return stmt, stmt.BindInt(2, limit)
}

// nonceFrom reads a nonce. One of another length was not written by a trigger
// of ours; what fits is compared like any other.
func nonceFrom(stmt *sqlite3.Stmt, column int) (nonce [8]byte) {
	copy(nonce[:], stmt.ColumnRawBlob(column))
	return nonce
}
