package postgres

import (
	"errors"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin/tree"
)

func TestParseHeader(t *testing.T) {
	for text, want := range map[string]struct {
		snapshot cache.Snapshot
		history  history
	}{
		"10:10:/00000001//5":                                      {cache.Snapshot{XMin: 10, XMax: 10}, history{"00000001", "", "5"}},
		"10:20:10,14,19/0000000A/uuid/16384":                      {cache.Snapshot{XMin: 10, XMax: 20, InProgress: []cache.Tx{10, 14, 19}}, history{"0000000A", "uuid", "16384"}},
		"18446744073709551614:18446744073709551615:/FFFFFFFF/x/5": {cache.Snapshot{XMin: 1<<64 - 2, XMax: 1<<64 - 1}, history{"FFFFFFFF", "x", "5"}},
	} {
		s, h, err := parseHeader(text)
		if err != nil || h != want.history || s.XMin != want.snapshot.XMin || s.XMax != want.snapshot.XMax || len(s.InProgress) != len(want.snapshot.InProgress) {
			t.Errorf("parseHeader(%q) = %v, %v, %v", text, s, h, err)
		}
	}
	for _, text := range []string{"", "/", "//", "///", "10:10:/00000001", "10:10:/00000001/x", "10:10:/00000001/x/", "10:10:/00000001/x/5/6", "10:10:", "10:10:/0000001/x/5", "10:10:/0000000G/x/5", "10:10:/00000001/x/y/5", "10:10/00000001/x/5",
		"a:10:/00000001/x/5", ":10:/00000001/x/5", "10::/00000001/x/5", "+10:11:/00000001/x/5", "-1:10:/00000001/x/5", "1_0:11:/00000001/x/5", "20:10:/00000001/x/5", "0:10:/00000001/x/5",
		"10:20:9/00000001/x/5", "10:20:20/00000001/x/5", "10:20:12,12/00000001/x/5", "10:20:13,12/00000001/x/5", "10:20:12,/00000001/x/5", "10:20:,12/00000001/x/5",
		"10:20:12;13/00000001/x/5", "10:18446744073709551616:/00000001/x/5", "10:20:30:/00000001/x/5"} {
		if s, h, err := parseHeader(text); err == nil {
			t.Errorf("parseHeader(%q) = %v, %v; want an error", text, s, h)
		}
	}
}

// A load has a token only if it was read from the history that the stream follows.
func TestTokenBelongsToTheHistory(t *testing.T) {
	pg := freshDatabase(t)
	runScript(t, pg.url, "CREATE TABLE dept (deptno int PRIMARY KEY); INSERT INTO dept VALUES (1)")
	depts := resource.Resource{Name: "depts", Key: []string{"deptno"}, Root: resource.Node{Table: "dept"}}
	woken := func(o *Origin) bool {
		select {
		case <-o.wake:
			return true
		default:
			return false
		}
	}
	load := func(o *Origin) (token, wake bool) {
		t.Helper()
		batch, err := o.Load(t.Context(), 0, []string{"1"})
		if err != nil || string(batch.Docs[0].Body) != `{"deptno":1}` {
			t.Fatal(err, batch)
		}
		return batch.Snapshot.XMax != 0, woken(o)
	}
	o := openOrigin(t, Config{URL: pg.url}, depts)
	if token, wake := load(o); token || wake {
		t.Errorf("nothing is followed: token %v, wake %v", token, wake)
	}
	follow(t, o)
	if token, _ := load(o); token {
		t.Error("a token without an incarnation")
	}
	runScript(t, pg.url, trackedSQL)
	o = openOrigin(t, Config{URL: pg.url}, depts)
	if token, wake := load(o); token || !wake {
		t.Errorf("the stream has not polled: token %v, wake %v", token, wake)
	}
	follow(t, o)
	if token, wake := load(o); !token || wake {
		t.Errorf("the stream's own history: token %v, wake %v", token, wake)
	}
	// The token is the snapshot: an open transaction is not visible in it.
	writer := connect(t, pg.url)
	if _, err := writer.Exec(t.Context(), "BEGIN; INSERT INTO dept VALUES (2)"); err != nil {
		t.Fatal(err)
	}
	xid := cache.Tx(scan[int64](t, writer, "SELECT pg_current_xact_id()::text::bigint"))
	seen := func(want bool) {
		t.Helper()
		batch, err := o.Load(t.Context(), 0, []string{"2"})
		if err != nil || batch.Snapshot.Sees(xid) != want || (batch.Docs[0].Body != nil) != want {
			t.Errorf("transaction %d: %+v, %v; want it seen: %v", xid, batch, err, want)
		}
	}
	seen(false)
	if _, err := writer.Exec(t.Context(), "COMMIT"); err != nil {
		t.Fatal(err)
	}
	seen(true)
	// A crash empties the table.
	runScript(t, pg.url, "DELETE FROM slipstream.incarnation")
	if token, wake := load(o); token || !wake {
		t.Errorf("incarnation gone: token %v, wake %v", token, wake)
	}
	runScript(t, pg.url, "INSERT INTO slipstream.incarnation VALUES (gen_random_uuid())")
	if token, wake := load(o); token || !wake {
		t.Errorf("another incarnation: token %v, wake %v", token, wake)
	}
	follow(t, o)
	h := *o.history.Load()
	for timeline, want := range map[string]string{"00000000": "later than the stream's", "00000002": "older timeline"} {
		o.history.Store(&history{timeline, h.incarnation, h.database})
		batch, err := o.Load(t.Context(), 0, []string{"1"})
		if timeline == "00000002" {
			if !errors.Is(err, cache.ErrUnavailable) || !strings.Contains(err.Error(), want) {
				t.Errorf("a server that is %s: %v", want, err)
			}
		} else if err != nil || batch.Snapshot.XMax != 0 || !woken(o) {
			t.Errorf("a server that is %s: %+v, %v", want, batch, err)
		}
	}
	// A forged second row cannot make a load succeed partially.
	runScript(t, pg.url, "INSERT INTO slipstream.incarnation VALUES (gen_random_uuid())")
	o.history.Store(&h)
	if _, err := o.Load(t.Context(), 0, []string{"1"}); err == nil {
		t.Error("a load with two incarnations succeeded")
	}
}

func TestDocumentsAboveTheLimit(t *testing.T) {
	pg := freshDatabase(t)
	runScript(t, pg.url, "CREATE TABLE doc (id text PRIMARY KEY, t text); INSERT INTO doc VALUES ('small', 'x'), ('big', repeat('x', 1000)), ('exact', repeat('x', 79)), ('above', repeat('x', 80))")
	o := openOrigin(t, Config{URL: pg.url, MaxDocument: 100}, resource.Resource{Name: "docs", Key: []string{"id"}, Root: resource.Node{Table: "doc"}})
	batch, err := o.Load(t.Context(), 0, []string{"small", "big", "none", "exact", "small", "\x00", "above"})
	if err != nil {
		t.Fatal(err)
	}
	var keyErr *resource.KeyError
	d := batch.Docs
	if string(d[0].Body) != `{"id":"small","t":"x"}` || !errors.Is(d[1].Err, cache.ErrTooLarge) || d[1].Body != nil || d[2].Body != nil || d[2].Err != nil ||
		len(d[3].Body) != 100 || string(d[4].Body) != string(d[0].Body) || !errors.As(d[5].Err, &keyErr) || !errors.Is(d[6].Err, cache.ErrTooLarge) {
		t.Errorf("%+v", d)
	}
	for i, id := range []string{"small", "big", "none", "exact"} { // one by one, with another statement
		batch, err := o.Load(t.Context(), 0, []string{id})
		if err != nil || string(batch.Docs[0].Body) != string(d[i].Body) || errors.Is(batch.Docs[0].Err, cache.ErrTooLarge) != errors.Is(d[i].Err, cache.ErrTooLarge) {
			t.Errorf("%s by itself: %+v, %v; among others %+v", id, batch, err, d[i])
		}
	}
	// The key loses its index after Open: two rows are an error of only that key.
	runScript(t, pg.url, "ALTER TABLE doc DROP CONSTRAINT doc_pkey; INSERT INTO doc VALUES ('small', 'y')")
	for _, ids := range [][]string{{"small", "none"}, {"small"}} {
		batch, err = o.Load(t.Context(), 0, ids)
		if err != nil || batch.Docs[0].Err == nil || batch.Docs[0].Body != nil || !strings.Contains(batch.Docs[0].Err.Error(), "two rows") || len(ids) > 1 && batch.Docs[1].Err != nil {
			t.Errorf("two rows of one key in %q: %+v, %v", ids, batch, err)
		}
	}
}

func TestRefuseNewKeys(t *testing.T) {
	pg := freshDatabase(t)
	runScript(t, pg.url, "CREATE TABLE dept (deptno int PRIMARY KEY)")
	depts := resource.Resource{Name: "depts", Key: []string{"deptno"}, Root: resource.Node{Table: "dept"}}
	o := openOrigin(t, Config{URL: pg.url}, depts)
	conn := connect(t, pg.url)
	for _, tt := range []struct {
		alter string
		want  string
	}{{"bigint", ""}, {"text", "was of kind integer when the gateway started and is now of kind text"}} {
		runScript(t, pg.url, "ALTER TABLE dept ALTER deptno TYPE "+tt.alter)
		s := &schema{set: o.set.Load(), resources: []*compiled{readOne(t, conn, depts)}}
		tree.RefuseNewKinds(s.set, s.resources)
		err := s.resources[0].Err
		if (err == nil) != (tt.want == "") || err != nil && !strings.Contains(err.Error(), tt.want) {
			t.Errorf("%s: %v, want %q", tt.alter, err, tt.want)
		}
		o.schema.Store(s)
		if _, err := o.Load(t.Context(), 0, []string{"1"}); (err == nil) != (tt.want == "") || err != nil && !errors.Is(err, cache.ErrUnavailable) {
			t.Errorf("%s: load: %v", tt.alter, err)
		}
	}
}
