package tarantool_test

import (
	"fmt"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/tarantool"
)

func TestSQL(t *testing.T) {
	c, _ := started(t)
	ctx := t.Context()
	must(t, c.Do(ctx, nil, tarantool.Execute("CREATE TABLE books (id INTEGER PRIMARY KEY AUTOINCREMENT, title STRING)")))
	var r tarantool.SQLResult
	must(t, c.Do(ctx, &r, tarantool.Execute("INSERT INTO books VALUES (NULL, ?), (NULL, :t)", "one", tarantool.Named("t", "two"))))
	if r.Changed != 2 || fmt.Sprint(r.Generated) != "[1 2]" {
		t.Errorf("%+v", r)
	}
	type book struct {
		ID    int
		Title string
	}
	var books []book
	r = tarantool.SQLResult{Rows: &books}
	must(t, c.Do(ctx, &r, tarantool.Execute("SELECT id, title FROM books WHERE id >= ? ORDER BY id", 1).Idempotent()))
	if fmt.Sprint(books) != "[{1 one} {2 two}]" || len(r.Columns) != 2 || r.Columns[1].Name != "TITLE" || r.Columns[1].Type != "string" {
		t.Errorf("%v, %+v", books, r.Columns)
	}
	st, err := c.Prepare(ctx, "SELECT title FROM books WHERE id = ?")
	must(t, err)
	if st.Parameters() != 1 {
		t.Errorf("%d parameters", st.Parameters())
	}
	one := func(id int, want string) {
		t.Helper()
		var rows []any
		if err := st.Do(ctx, &rows, id); err != nil || fmt.Sprint(rows) != want {
			t.Errorf("%v, %v; want %s", rows, err, want)
		}
	}
	one(1, "[[one]]")
	must(t, c.Do(ctx, nil, tarantool.Execute("UPDATE books SET title = 'uno' WHERE id = 1")))
	one(1, "[[uno]]")

	must(t, st.Close(ctx))
	one(2, "[[two]]") // the statement is prepared again
	var wg sync.WaitGroup
	for range 8 {
		wg.Go(func() {
			for range 100 {
				one(2, "[[two]]")
			}
		})
	}
	wg.Wait()
	must(t, st.Close(ctx))
	if _, err := c.Prepare(ctx, "SELECT nonsense FROM"); err == nil {
		t.Error("nonsense was prepared")
	}
}
