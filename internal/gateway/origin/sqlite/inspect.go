package sqlite

import (
	"fmt"
	"slices"
	"strings"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

// affinity is a column's type affinity as SQLite derives it from the declared
// type (https://sqlite.org/datatype3.html section 3.1).
type affinity uint8

const (
	affinityBlob affinity = iota // declared BLOB, or not declared at all
	affinityText
	affinityNumeric
	affinityInteger
	affinityReal
)

// numeric reports whether comparisons treat the affinity as a number's.
func (a affinity) numeric() bool { return a >= affinityNumeric }

// affinityOf applies the five rules in SQLite's order.
func affinityOf(declared string) affinity {
	d := strings.ToUpper(declared)
	switch {
	case strings.Contains(d, "INT"):
		return affinityInteger
	case strings.Contains(d, "CHAR"), strings.Contains(d, "CLOB"), strings.Contains(d, "TEXT"):
		return affinityText
	case strings.Contains(d, "BLOB"), d == "":
		return affinityBlob
	case strings.Contains(d, "REAL"), strings.Contains(d, "FLOA"), strings.Contains(d, "DOUB"):
		return affinityReal
	default:
		return affinityNumeric
	}
}

// column is one column of a table.
type column struct {
	name      string
	declared  string // declared type, as written
	affinity  affinity
	collation string // upper case
	notNull   bool
	fallback  bool // has a DEFAULT
	generated bool
	primary   int // place in the primary key, from 1; 0 if not part of it
}

// indexColumn is a column of a unique index. column is -1 for the rowid.
type indexColumn struct {
	column    int
	collation string // upper case
}

// uniqueIndex is a constraint that makes SQLite refuse, or with REPLACE delete, a
// row.
type uniqueIndex struct {
	columns []indexColumn
	partial bool
	// opaque is set for an index whose conflicts cannot be written as a
	// comparison of columns: it has an expression, or a collation of the
	// application.
	opaque bool
}

// foreignKey is one REFERENCES clause. to is empty if it omits the columns of the
// parent and so means its primary key.
type foreignKey struct {
	table    string
	from, to []string
}

// table is the description of one table.
type table struct {
	name         string
	columns      []column
	primaryKey   []indexColumn
	withoutRowid bool
	strict       bool   // columns hold nothing but their declared types
	rowidAlias   int    // the INTEGER PRIMARY KEY, or -1 if there is none
	rowid        string // a name under which the rowid can be reached, "" if none
	unique       []uniqueIndex
	leading      []int // first column of every full index: where a search need not scan
	foreignKeys  []foreignKey
}

// Name implements [tree.Table].
func (t *table) Name() string { return t.name }

// Column implements [tree.Table].
func (t *table) Column(name string) int {
	return slices.IndexFunc(t.columns, func(c column) bool { return strings.EqualFold(c.name, name) })
}

// ColumnNames implements [tree.Table].
func (t *table) ColumnNames() []string {
	names := make([]string, len(t.columns))
	for i, c := range t.columns {
		names[i] = c.name
	}
	return names
}

// catalog reads table descriptions through one connection, each at most once.
type catalog struct {
	conn   *sqlite3.Conn
	tables map[string]*table
	names  []string // of ordinary tables, for hints
}

func newCatalog(conn *sqlite3.Conn) (*catalog, error) {
	c := &catalog{conn: conn, tables: make(map[string]*table)}
	err := query(conn, `SELECT name FROM pragma_table_list WHERE schema = 'main' AND type = 'table'
		AND name NOT LIKE 'sqlite\_%' ESCAPE '\' AND name NOT LIKE 'slipstream\_%' ESCAPE '\' ORDER BY name`, nil,
		func(s *sqlite3.Stmt) error {
			c.names = append(c.names, s.ColumnText(0))
			return nil
		})
	if err != nil {
		return nil, err
	}
	var encoding string
	err = query(conn, `PRAGMA encoding`, nil, func(s *sqlite3.Stmt) error {
		encoding = s.ColumnText(0)
		return nil
	})
	if err != nil {
		return nil, err
	}
	if encoding != "UTF-8" {
		return nil, fmt.Errorf("the database is encoded in %s, expected UTF-8 (PRAGMA encoding)", encoding)
	}
	return c, nil
}

// query runs one statement with text parameters and calls row for each row.
func query(conn *sqlite3.Conn, sql string, args []string, row func(*sqlite3.Stmt) error) error {
	stmt, _, err := conn.Prepare(sql)
	if err != nil {
		return err
	}
	defer stmt.Close()
	for i, arg := range args {
		if err := stmt.BindText(i+1, arg); err != nil {
			return err
		}
	}
	for stmt.Step() {
		if err := row(stmt); err != nil {
			return err
		}
	}
	return stmt.Err()
}

// table returns the description of an ordinary table, or an error: *[tree.NoTable]
// if there is no such table or it is of a kind that cannot be a resource.
func (c *catalog) table(name string) (*table, error) {
	key := strings.ToLower(name)
	if t := c.tables[key]; t != nil {
		return t, nil
	}
	t := &table{rowidAlias: -1}
	var kind string
	err := query(c.conn, `SELECT name, type, wr, strict FROM pragma_table_list WHERE schema = 'main' AND name = ? COLLATE NOCASE`,
		[]string{name}, func(s *sqlite3.Stmt) error {
			t.name, kind, t.withoutRowid, t.strict = s.ColumnText(0), s.ColumnText(1), s.ColumnBool(2), s.ColumnBool(3)
			return nil
		})
	switch {
	case err != nil:
		return nil, err
	case kind == "":
		return nil, &tree.NoTable{Problem: fmt.Sprintf("there is no table %q; %s", name, origin.Choices(name, c.names))}
	case kind == "view":
		return nil, &tree.NoTable{Problem: fmt.Sprintf("%q is a view; triggers on a view do not fire for changes to its tables, so name the tables", name)}
	case kind != "table":
		return nil, &tree.NoTable{Problem: fmt.Sprintf("%q is a %s table; only ordinary tables have triggers", name, kind)}
	case strings.HasPrefix(strings.ToLower(t.name), "sqlite_"), strings.EqualFold(t.name, changeTable):
		return nil, &tree.NoTable{Problem: fmt.Sprintf("%q is a table of the system; expected a user table", name)}
	}
	if err := c.readColumns(t); err != nil {
		return nil, err
	}
	for i := range t.columns {
		// In a STRICT table ANY converts nothing; elsewhere it is a name
		// like any other, and so NUMERIC.
		if t.strict && strings.EqualFold(t.columns[i].declared, "ANY") {
			t.columns[i].affinity = affinityBlob
		}
	}
	if err := c.readIndexes(t); err != nil {
		return nil, err
	}
	if err := c.readForeignKeys(t); err != nil {
		return nil, err
	}
	c.tables[key] = t
	return t, nil
}

func (c *catalog) readColumns(t *table) error {
	err := query(c.conn, `SELECT name, type, "notnull", dflt_value IS NOT NULL, pk, hidden FROM pragma_table_xinfo(?)`,
		[]string{t.name}, func(s *sqlite3.Stmt) error {
			t.columns = append(t.columns, column{
				name:      s.ColumnText(0),
				declared:  s.ColumnText(1),
				affinity:  affinityOf(s.ColumnText(1)),
				notNull:   s.ColumnBool(2),
				fallback:  s.ColumnBool(3),
				primary:   s.ColumnInt(4),
				generated: s.ColumnInt(5) >= 2,
			})
			return nil
		})
	if err != nil {
		return err
	}
	for i := range t.columns {
		_, collation, _, _, _, err := c.conn.TableColumnMetadata("main", t.name, t.columns[i].name)
		if err != nil {
			return err
		}
		t.columns[i].collation = strings.ToUpper(collation)
	}
	if !t.withoutRowid {
		for _, name := range []string{"rowid", "_rowid_", "oid"} {
			if t.Column(name) < 0 {
				t.rowid = name
				break
			}
		}
	}
	return nil
}

func (c *catalog) readIndexes(t *table) error {
	type listed struct {
		name            string
		unique, partial bool
		primary         bool
	}
	var indexes []listed
	err := query(c.conn, `SELECT name, "unique", partial, origin = 'pk' FROM pragma_index_list(?) ORDER BY name`,
		[]string{t.name}, func(s *sqlite3.Stmt) error {
			indexes = append(indexes, listed{s.ColumnText(0), s.ColumnBool(1), s.ColumnBool(2), s.ColumnBool(3)})
			return nil
		})
	if err != nil {
		return err
	}
	hasPrimaryIndex := false
	for _, index := range indexes {
		u := uniqueIndex{partial: index.partial}
		err := query(c.conn, `SELECT cid, upper(coll) FROM pragma_index_xinfo(?) WHERE key ORDER BY seqno`,
			[]string{index.name}, func(s *sqlite3.Stmt) error {
				ic := indexColumn{column: s.ColumnInt(0), collation: s.ColumnText(1)}
				if ic.column == -2 || !builtinCollation(ic.collation) {
					u.opaque = true
				}
				u.columns = append(u.columns, ic)
				return nil
			})
		if err != nil {
			return err
		}
		if len(u.columns) > 0 && !index.partial && u.columns[0].column >= 0 &&
			u.columns[0].collation == t.columns[u.columns[0].column].collation {
			t.leading = append(t.leading, u.columns[0].column)
		}
		if !index.unique {
			continue
		}
		if index.primary {
			hasPrimaryIndex = true
			t.primaryKey = u.columns
		}
		t.unique = append(t.unique, u)
	}
	if t.withoutRowid {
		return nil
	}
	// A primary key without its own index is the rowid itself.
	if !hasPrimaryIndex {
		t.rowidAlias = slices.IndexFunc(t.columns, func(c column) bool { return c.primary > 0 })
	}
	rowid := uniqueIndex{columns: []indexColumn{{column: t.rowidAlias, collation: "BINARY"}}}
	if t.rowidAlias >= 0 {
		t.rowid = t.columns[t.rowidAlias].name
		t.primaryKey = rowid.columns
		t.leading = append(t.leading, t.rowidAlias)
	}
	if t.rowid != "" {
		t.unique = append(t.unique, rowid)
	}
	return nil
}

func builtinCollation(name string) bool {
	return name == "BINARY" || name == "NOCASE" || name == "RTRIM"
}

func (c *catalog) readForeignKeys(t *table) error {
	var current foreignKey
	last := -1
	flush := func() {
		if last >= 0 {
			t.foreignKeys = append(t.foreignKeys, current)
		}
	}
	err := query(c.conn, `SELECT id, "table", "from", "to" FROM pragma_foreign_key_list(?) ORDER BY id, seq`,
		[]string{t.name}, func(s *sqlite3.Stmt) error {
			if id := s.ColumnInt(0); id != last {
				flush()
				last, current = id, foreignKey{table: s.ColumnText(1)}
			}
			current.from = append(current.from, s.ColumnText(2))
			if s.ColumnType(3) != sqlite3.NULL {
				current.to = append(current.to, s.ColumnText(3))
			}
			return nil
		})
	flush()
	return err
}

// triggerTexts returns the stored text of every trigger and table of ours.
func triggerTexts(conn *sqlite3.Conn) (map[string]string, error) {
	texts := make(map[string]string)
	err := query(conn, `SELECT name, sql FROM sqlite_schema
		WHERE type IN ('trigger', 'table') AND name LIKE 'slipstream\_%' ESCAPE '\'`, nil,
		func(s *sqlite3.Stmt) error {
			texts[s.ColumnText(0)] = s.ColumnText(1)
			return nil
		})
	return texts, err
}
