package sqlite

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// Check compares what the resources need with what the database has. The
// promise of a resource holds while none of its objects is missing or differs.
func (o *Origin) Check(ctx context.Context) ([]origin.Finding, error) {
	var findings []origin.Finding
	err := o.withConn(ctx, "check triggers", func(c *conn) error {
		return c.read(func() (err error) {
			findings, err = o.findings(c.Conn)
			return err
		})
	})
	return findings, err
}

// Plan returns the statements that Apply would run now, or none if everything is
// in place.
func (o *Origin) Plan(ctx context.Context) ([]origin.Statement, error) {
	findings, err := o.Check(ctx)
	if err != nil {
		return nil, err
	}
	return o.plan(findings), nil
}

// Apply creates what is missing and replaces what differs, in one transaction.
// It appends a row to the change table for every resource it touched, so that
// no document that was read before its triggers existed outlives them.
func (o *Origin) Apply(ctx context.Context) ([]origin.Statement, error) {
	var done []origin.Statement
	err := o.withWriter(ctx, "create triggers", func(conn *sqlite3.Conn) error {
		findings, err := o.findings(conn)
		if err != nil {
			return err
		}
		done = o.plan(findings)
		for _, s := range done {
			if err := conn.Exec(s.SQL); err != nil {
				return fmt.Errorf("%w in %s", err, s.SQL)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

// Drop removes every trigger and the change table, of this configuration and of
// earlier ones, and returns the statements that it ran.
func (o *Origin) Drop(ctx context.Context) ([]origin.Statement, error) {
	var done []origin.Statement
	err := o.withWriter(ctx, "drop triggers", func(conn *sqlite3.Conn) error {
		texts, err := triggerTexts(conn)
		if err != nil {
			return err
		}
		for _, name := range sortedNames(texts) {
			if name == changeTable {
				continue
			}
			done = append(done, origin.Statement{SQL: "DROP TRIGGER " + quoteName(name), Comment: "no longer recorded"})
		}
		if texts[changeTable] != "" {
			done = append(done, origin.Statement{SQL: "DROP TABLE " + quoteName(changeTable), Comment: "the record of changes"})
		}
		for _, s := range done {
			if err := conn.Exec(s.SQL); err != nil {
				return fmt.Errorf("%w in %s", err, s.SQL)
			}
		}
		return nil
	})
	if err != nil {
		return nil, err
	}
	return done, nil
}

func sortedNames(texts map[string]string) []string {
	names := make([]string, 0, len(texts))
	for name := range texts {
		names = append(names, name)
	}
	slices.Sort(names)
	return names
}

// Prune implements [origin.Administration]. There is nothing to do for it: Apply drops what no
// resource needs, because an SQLite file has one configuration.
func (o *Origin) Prune(context.Context, [][]resource.Resource, func(origin.Statement)) error {
	return errors.New("sqlite: there is nothing to prune: apply drops what it does not need")
}

// Retention implements [origin.Administration]: an SQLite file has no such statistics.
func (o *Origin) Retention(context.Context) (r origin.Retention, ok bool, err error) {
	return r, false, nil
}

// findings compares inside the transaction that conn is in.
func (o *Origin) findings(conn *sqlite3.Conn) ([]origin.Finding, error) {
	version, err := schemaVersion(conn)
	if err != nil {
		return nil, err
	}
	s, err := readSchema(conn, version, o.set.Load())
	if err != nil {
		return nil, err
	}
	texts, err := triggerTexts(conn)
	if err != nil {
		return nil, err
	}
	wanted := []origin.Object{{Name: changeTable, SQL: changeTableSQL, Comment: "the record of changes that all triggers append to"}}
	for _, c := range s.resources {
		if c.Err != nil {
			return nil, c.Err
		}
		wanted = append(wanted, c.triggers...)
	}
	var findings []origin.Finding
	for _, object := range wanted {
		findings = append(findings, origin.Finding{Object: object, State: stateOf(object, texts)})
		delete(texts, object.Name)
	}
	for _, name := range sortedNames(texts) {
		resource, _, _ := strings.Cut(strings.TrimPrefix(name, "slipstream_"), "/")
		findings = append(findings, origin.Finding{
			Object: origin.Object{Name: name, Resource: resource, SQL: texts[name], Comment: "not needed by the present declaration"}, State: origin.LeftOver})
	}
	return findings, nil
}

func stateOf(object origin.Object, texts map[string]string) origin.State {
	switch text, ok := texts[object.Name]; {
	case !ok:
		return origin.Missing
	case text != object.SQL:
		return origin.Differs
	default:
		return origin.Present
	}
}

// missing returns, for humans, why the promise of the resource cannot be kept, or
// "" if it can.
func (c *compiled) missing(texts map[string]string) string {
	if c.Err != nil {
		return c.Err.Error()
	}
	const remedy = "; run slipstream db apply"
	if state := stateOf(origin.Object{Name: changeTable, SQL: changeTableSQL}, texts); state != origin.Present {
		return fmt.Sprintf("table %s %s%s", changeTable, verb(state), remedy)
	}
	for _, object := range c.triggers {
		if state := stateOf(object, texts); state != origin.Present {
			return fmt.Sprintf("trigger %s %s%s", object.Name, verb(state), remedy)
		}
	}
	return ""
}

func verb(s origin.State) string {
	if s == origin.Missing {
		return "is missing"
	}
	return "differs from what the resources need"
}

// plan orders the statements: drops first, then the table, then triggers.
func (o *Origin) plan(findings []origin.Finding) []origin.Statement {
	var drops, creates []origin.Statement
	touched := make(map[string]bool)
	ours := make(map[string]bool)
	resources := o.set.Load().Resources
	for i := range resources {
		ours[resources[i].Name] = true
	}
	for _, f := range findings {
		kind := "TRIGGER"
		if f.Name == changeTable {
			kind = "TABLE"
		}
		switch f.State {
		case origin.LeftOver:
			// Those of other resources may serve another gateway: Drop
			// removes them, a plan does not.
			if ours[f.Resource] {
				drops = append(drops, origin.Statement{SQL: "DROP TRIGGER " + quoteName(f.Name), Comment: f.Name + " is left over"})
			}
			continue
		case origin.Present:
			continue
		case origin.Differs:
			drops = append(drops, origin.Statement{SQL: "DROP " + kind + " " + quoteName(f.Name), Comment: f.Name + " differs and is recreated"})
		}
		creates = append(creates, origin.Statement{SQL: f.SQL, Comment: f.Comment})
		touched[f.Resource] = true
	}
	for i := range resources {
		if name := resources[i].Name; touched[name] || touched[""] {
			creates = append(creates, origin.Statement{
				SQL: fmt.Sprintf("INSERT INTO %s(at, resource, key, nonce) VALUES (CAST(strftime('%%s','now') AS INTEGER), %s, NULL, randomblob(8))",
					quoteName(changeTable), quoteText(name)),
				Comment: "documents of " + name + " that were read before now may have missed changes"})
		}
	}
	return append(drops, creates...)
}

// withWriter runs do in a write transaction on a new connection.
func (o *Origin) withWriter(ctx context.Context, doing string, do func(*sqlite3.Conn) error) error {
	c, err := o.open(ctx)
	if err != nil {
		return err
	}
	defer c.close()
	c.SetInterrupt(ctx)
	err = c.Exec("BEGIN IMMEDIATE")
	if err == nil {
		if err = do(c.Conn); err == nil {
			err = c.Exec("COMMIT")
		}
		if !c.GetAutocommit() {
			c.SetInterrupt(context.Background())
			_ = c.Exec("ROLLBACK") // the error that led here is the one to report
		}
	}
	return o.wrapError(ctx, doing, err)
}

// trimRows is the maximum of rows of the change table that one trim deletes: 10,000
// take about 20 ms (BenchmarkTrim), less than the busy timeout of any writer.
const trimRows = 10_000

// trim deletes rows older than keep, never the newest one and none after limit,
// which the stream has still to read. It stops at the first young row, even if
// old ones follow because a clock was set back: another gateway that finds the
// row it read last must find every later one too.
func trim(conn *sqlite3.Conn, now time.Time, keep time.Duration, limit int64) (int64, error) {
	stmt, _, err := conn.Prepare(`
		WITH page AS (SELECT id, at FROM "slipstream_change" WHERE id < ?1 ORDER BY id LIMIT ?2)
		DELETE FROM "slipstream_change" WHERE id < coalesce(
			(SELECT min(id) FROM page WHERE at >= ?3),
			(SELECT max(id) + 1 FROM page))`)
	if err != nil {
		return 0, err
	}
	defer stmt.Close()
	if err := stmt.BindInt64(1, limit); err != nil {
		return 0, err
	}
	if err := stmt.BindInt64(2, trimRows); err != nil {
		return 0, err
	}
	if err := stmt.BindInt64(3, now.Add(-keep).Unix()); err != nil {
		return 0, err
	}
	if err := stmt.Exec(); err != nil {
		return 0, err
	}
	return conn.Changes(), nil
}
