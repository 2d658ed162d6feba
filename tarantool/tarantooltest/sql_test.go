package tarantooltest_test

import (
	"bytes"
	"errors"
	"fmt"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/box"
	"github.com/slipstream-go/slipstream/tarantool"
	"github.com/slipstream-go/slipstream/tarantool/iproto"
	"github.com/slipstream-go/slipstream/tarantool/tarantooltest"
)

// statements are defined in the server, and mean the same to a real one.
var statements = map[string]*tarantooltest.Statement{
	`CREATE TABLE books (id INTEGER PRIMARY KEY AUTOINCREMENT, title STRING)`: {Run: says(1)},
	`INSERT INTO books VALUES (NULL, ?), (NULL, :t)`: {
		Parameters: []tarantooltest.Column{{}, {Name: ":t"}}, Run: says(2, 1, 2),
	},
	`UPDATE books SET title = 'x' WHERE id = 77`: {},
	`SELECT id, title FROM books WHERE id >= ?`: {
		Columns:    []tarantooltest.Column{{Name: "ID", Type: "integer"}, {Name: "TITLE", Type: "string"}},
		Parameters: []tarantooltest.Column{{}}, Run: says([]any{1, "one"}, []any{2, nil}),
	},
	`SELECT title FROM books WHERE id = 77`: {Columns: []tarantooltest.Column{{Name: "TITLE", Type: "string"}}},
}

func says(results ...any) tarantooltest.Handler {
	return func(*tarantooltest.Request) ([]any, error) { return results, nil }
}

func (p *peer) execute(text string, args ...any) (box.Response, error) {
	p.t.Helper()
	return p.response(box.CodeExecute, func(b []byte) []byte { return any1(box.AppendExecuteHead(b, text), append(list{}, args...)) })
}

func (p *peer) executeID(id uint32, args ...any) (box.Response, error) {
	p.t.Helper()
	return p.response(box.CodeExecute, func(b []byte) []byte { return any1(box.AppendExecuteIDHead(b, id), append(list{}, args...)) })
}

func (p *peer) prepare(text string) (box.Response, error) {
	p.t.Helper()
	return p.response(box.CodePrepare, func(b []byte) []byte { return box.AppendPrepare(b, text) })
}

func (p *peer) unprepare(id uint32) string {
	p.t.Helper()
	return p.do(box.CodePrepare, func(b []byte) []byte { return box.AppendUnprepare(b, id) })
}

// Statements are answered as a real server answers them, to the byte but for their numbers.
func TestStatementsAsTarantoolAnswersThem(t *testing.T) {
	s, ours := start(t, tarantooltest.Config{Version: "2.6.0", Protocol: -1})
	theirs := dial(t, testkit.StartTarantool(t, "").Addr)
	for text, st := range statements {
		s.SQL(text, st)
	}
	same := func(what string, ask func(p *peer) (box.Response, error)) (got, wanted box.Response) {
		t.Helper()
		got, err := ask(ours)
		wanted, werr := ask(theirs)
		if text(t, got, err) != text(t, wanted, werr) {
			t.Fatalf("%s: %s, want %s", what, text(t, got, err), text(t, wanted, werr))
		}
		for _, part := range [][2][]byte{
			{got.Metadata, wanted.Metadata}, {got.BindMetadata, wanted.BindMetadata}, {got.SQLInfo, wanted.SQLInfo}, {got.Data, wanted.Data},
		} {
			if !bytes.Equal(part[0], part[1]) || (part[0] == nil) != (part[1] == nil) {
				t.Errorf("%s: %x, want %x", what, part[0], part[1])
			}
		}
		want(t, what+": parameters", got.BindCount, wanted.BindCount)
		want(t, what+": a number", got.StatementID != 0, wanted.StatementID != 0)
		return got, wanted
	}
	for _, c := range []struct {
		text string
		args []any
	}{
		{`CREATE TABLE books (id INTEGER PRIMARY KEY AUTOINCREMENT, title STRING)`, nil},
		{`INSERT INTO books VALUES (NULL, ?), (NULL, :t)`, []any{"one", map[any]any{":t": nil}}},
		{`UPDATE books SET title = 'x' WHERE id = 77`, nil},
		{`SELECT id, title FROM books WHERE id >= ?`, []any{int64(1)}},
		{`SELECT title FROM books WHERE id = 77`, nil},
	} {
		same(c.text, func(p *peer) (box.Response, error) { return p.execute(c.text, c.args...) })
		if c.text[0] == 'C' || c.text[0] == 'I' {
			continue // what cannot be done again
		}
		got, wanted := same("prepare "+c.text, func(p *peer) (box.Response, error) { return p.prepare(c.text) })
		id := map[*peer]uint32{ours: got.StatementID, theirs: wanted.StatementID}
		same("by number "+c.text, func(p *peer) (box.Response, error) { return p.executeID(id[p], c.args...) })
		want(t, "forgotten", ours.unprepare(id[ours]), theirs.unprepare(id[theirs]))
		same("gone "+c.text, func(p *peer) (box.Response, error) { return p.executeID(id[p], c.args...) })
		want(t, "forgotten twice", ours.unprepare(id[ours]), theirs.unprepare(id[theirs]))
	}
	empty := func(b []byte) []byte { return iproto.AppendMap(b, 0) }
	want(t, "no text", ours.do(box.CodeExecute, empty), theirs.do(box.CodeExecute, empty))
	want(t, "nothing to prepare", ours.do(box.CodePrepare, empty), theirs.do(box.CodePrepare, empty))
}

// The package's own client finds statements, with all that their descriptions say.
func TestStatements(t *testing.T) {
	s, _ := start(t, tarantooltest.Config{})
	var args string
	s.SQL("SELECT ?", &tarantooltest.Statement{
		Columns:    []tarantooltest.Column{{Name: "A", Nullable: true, Autoincrement: true, Collation: "unicode", Span: "?"}},
		Parameters: []tarantooltest.Column{{Name: "?", Type: "integer"}},
		Run: func(r *tarantooltest.Request) ([]any, error) {
			args = fmt.Sprint(r.Args)
			if r.Function != "SELECT ?" {
				return nil, errors.New(r.Function)
			}
			return []any{[]any{7}}, nil
		},
	})
	s.SQL("fails", &tarantooltest.Statement{Run: func(*tarantooltest.Request) ([]any, error) {
		return nil, tarantooltest.Error(uint32(iproto.CodeSQLExecute), "no")
	}})
	c, err := tarantool.Connect(t.Context(), tarantool.Options{Addr: s.Addr(), Timeout: 30 * time.Second})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	var rows [][]int
	result := tarantool.SQLResult{Rows: &rows}
	if err := c.Exec(t.Context(), &result, tarantool.Execute("SELECT ?", tarantool.Named("n", 3))); err != nil {
		t.Fatal(err)
	}
	want(t, "rows", rows, [][]int{{7}})
	want(t, "columns", result.Columns, []tarantool.Column{{Name: "A", Type: "any", Nullable: true, Autoincrement: true, Collation: "unicode", Span: "?"}})
	want(t, "arguments", args, "[map[:n:3]]")
	st, err := c.Prepare(t.Context(), "SELECT ?")
	if err != nil {
		t.Fatal(err)
	}
	want(t, "parameters", st.Parameters(), 1)
	for i := range 2 {
		if err := st.Exec(t.Context(), &rows, 4+i); err != nil {
			t.Fatal(err)
		}
		want(t, "arguments", args, fmt.Sprintf("[%d]", 4+i))
		s.HangUp() // it is prepared again
		testkit.Eventually(t, 10*time.Second, func() error {
			if open, ever := s.Connections(); open != 1 || ever != 3+i {
				return fmt.Errorf("%d connections, %d so far", open, ever)
			}
			return nil
		})
	}
	if err := st.Close(t.Context()); err != nil {
		t.Error(err)
	}
	if err := c.Exec(t.Context(), nil, tarantool.Execute("fails")); !tarantool.IsCode(err, iproto.CodeSQLExecute) {
		t.Error(err)
	}
	s.SQL("fails", nil)
	if err := c.Exec(t.Context(), nil, tarantool.Execute("fails")); !tarantool.IsCode(err, iproto.CodeUnsupported) {
		t.Error(err)
	}
	s.Handle("execute SELECT ?", func(*tarantooltest.Request) ([]any, error) { return nil, tarantooltest.HangUp })
	if err := c.Exec(t.Context(), nil, tarantool.Execute("SELECT ?")); err == nil {
		t.Error("a handler does not come first")
	}
}

// A batch of Arrow is known to a server that says so, and its engine refuses it.
func TestArrow(t *testing.T) {
	insert := func(b []byte) []byte {
		return iproto.AppendArrow(box.AppendArrowHead(b, 512), iproto.Arrow("batch"))
	}
	_, p := start(t, tarantooltest.Config{})
	want(t, "new", p.do(box.CodeArrow, insert), "error "+iproto.CodeUnsupported.String())
	_, p = start(t, tarantooltest.Config{Protocol: 9})
	want(t, "old", p.do(box.CodeArrow, insert), "error "+iproto.CodeUnknownRequestType.String())
}
