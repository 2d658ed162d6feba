package postgres

import (
	"fmt"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

func TestBoundOfTheChangeTable(t *testing.T) {
	writer := []origin.Holder{{Kind: "transaction", Deletes: true}}
	dump := []origin.Holder{{Kind: "snapshot"}}
	for _, test := range []struct {
		name    string
		kept    int64
		reach   time.Duration
		holders []origin.Holder
		want    origin.Bound
		says    string
	}{
		{"empty", 0, 0, nil, origin.BoundTime, "longer than 24h0m starts"},
		{"few changes", 100 << 20, 24 * time.Hour, nil, origin.BoundTime, "longer than 24h0m starts"},
		{"many changes", 1000 << 20, 3 * time.Hour, nil, origin.BoundBytes, "longer than 3h0m starts"},
		{"many changes, long ago", 1000 << 20, 24 * time.Hour, nil, origin.BoundTime, "longer than 24h0m starts"},
		{"a minute's more than fit", 1050 << 20, 3 * time.Hour, writer, origin.BoundBytes, "longer than 3h0m starts"},
		{"a long writer", 3000 << 20, 3 * time.Hour, writer, origin.BoundTransaction, "are never deleted"},
		{"a writer of two days", 100 << 20, 48 * time.Hour, writer, origin.BoundTransaction, "are never deleted"},
		{"a writer that is no trouble yet", 100 << 20, 2 * time.Hour, writer, origin.BoundTime, "longer than 24h0m starts"},
		{"a dump", 1000 << 20, 3 * time.Hour, dump, origin.BoundBytes, "cannot be vacuumed"},
	} {
		r := origin.Retention{Bytes: 2 * test.kept, Kept: test.kept, Reach: test.reach, Holders: test.holders, KeepChanges: 24 * time.Hour, KeepBytes: 1 << 30}
		r.Bound = boundOf(r)
		if text := strings.Join(r.Sentences(), "; "); r.Bound != test.want || !strings.Contains(text, test.says) {
			t.Errorf("%s: bound %s, want %s with %q; %s", test.name, r.Bound, test.want, test.says, text)
		}
	}
}

// The oldest transaction with an id is named to every role; a snapshot without one only
// to a role that sees the activity of others.
func TestHoldersAreNamed(t *testing.T) {
	pg := startServer(t, "max_prepared_transactions=1", "autovacuum=off")
	d := pg.database(t, deptSchema, "CREATE ROLE plain LOGIN; CREATE ROLE stats LOGIN; GRANT pg_read_all_stats TO stats")
	holders := func(role string) (list []string) {
		t.Helper()
		found, err := readHolders(t.Context(), d.connect(t, role))
		if err != nil {
			t.Fatal(err)
		}
		for _, h := range found {
			list = append(list, fmt.Sprint(h.Kind, " ", h.Name, " ", h.PID != 0, " ", h.XID, " ", h.Effect()))
		}
		return list
	}
	expect := func(role string, want ...string) {
		t.Helper()
		if got := holders(role); !slices.Equal(got, want) {
			t.Errorf("%s sees %q, want %q", role, got, want)
		}
	}
	expect("plain")
	expect("stats")

	dump := d.connect(t, "")
	execOn(t, dump, "SET application_name = 'dump'; BEGIN ISOLATION LEVEL REPEATABLE READ; TABLE dept")
	xmin := textOn(t, dump, "SELECT pg_snapshot_xmin(pg_current_snapshot())")
	d.exec(t, "INSERT INTO dept VALUES (50, 'burns an xid')")
	expect("stats", "snapshot dump true "+xmin+" vacuum")
	expect("plain")

	writer := d.connect(t, "")
	execOn(t, writer, "SET application_name = 'job'; BEGIN; INSERT INTO dept VALUES (60, 'job')")
	xid := textOn(t, writer, "SELECT pg_current_xact_id()")
	execOn(t, d.connect(t, ""), "SET application_name = 'younger'; BEGIN; INSERT INTO dept VALUES (70, 'younger')")
	expect("stats", "transaction job true "+xid+" deletion", "snapshot dump true "+xmin+" vacuum")
	expect("plain", "transaction job true "+xid+" deletion")
	execOn(t, dump, "COMMIT")
	expect("stats", "transaction job true "+xid+" deletion")

	execOn(t, writer, "PREPARE TRANSACTION 'in doubt'")
	expect("stats", "prepared transaction in doubt false "+xid+" deletion")
	expect("plain", "prepared transaction in doubt false "+xid+" deletion")
	d.exec(t, "ROLLBACK PREPARED 'in doubt'")

	found, err := readHolders(t.Context(), d.connect(t, "stats"))
	if err != nil || len(found) != 1 || found[0].Name != "younger" || found[0].Age <= 0 {
		t.Errorf("%v, %v; want the younger writer with its age", found, err)
	}
}
