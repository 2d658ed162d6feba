package postgres

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"

	"github.com/jackc/pgx/v5"
)

// fakeApplier gives another extension the name of one that replicates, and a list of
// the tables that it replicates into.
func fakeApplier(name string) string {
	return `CREATE EXTENSION postgres_fdw; UPDATE pg_extension SET extname = '` + name + `' WHERE extname = 'postgres_fdw';
		CREATE SCHEMA ` + name + `; CREATE TABLE ` + name + `.local_sync_status (sync_kind "char" NOT NULL, sync_subid oid NOT NULL,
			sync_nspname name, sync_relname name, sync_status "char" NOT NULL);
		ALTER EXTENSION ` + name + ` ADD TABLE ` + name + `.local_sync_status;`
}

// Replication into a table of a resource without firing triggers breaks its promise if it is
// certain; if it is only possible, there is a warning.
func TestAppliersBelowTriggersAreFound(t *testing.T) {
	const replicated = `INSERT INTO %s.local_sync_status VALUES ('f', 1, NULL, NULL, 'r'), ('d', 1, 'public', 'emp', 'r');`
	pg := startServer(t)
	for _, tt := range []struct {
		name, sql      string
		none           bool
		refused, warns string
	}{
		{"none", "", false, "", ""},
		{"a table of pglogical", fakeApplier("pglogical") + strings.ReplaceAll(replicated, "%s", "pglogical"), false,
			"pglogical replicates into table public.emp", ""},
		{"a table of spock, without a promise", fakeApplier("spock") + strings.ReplaceAll(replicated, "%s", "spock"), true, "", ""},
		{"a table of spock", fakeApplier("spock") + strings.ReplaceAll(replicated, "%s", "spock"), false, "spock replicates into table public.emp", ""},
		{"a subscription without the table", fakeApplier("pglogical"), false, "", "the extension pglogical is installed"},
		{"bdr, whose list is not known", fakeApplier("bdr") + "DROP EXTENSION bdr CASCADE; " +
			"CREATE EXTENSION postgres_fdw; UPDATE pg_extension SET extname = 'bdr' WHERE extname = 'postgres_fdw'", false, "", "the extension bdr is installed"},
		{"a list of another form", fakeApplier("pglogical") + "ALTER TABLE pglogical.local_sync_status RENAME sync_relname TO other", false, "", "the extension pglogical is installed"},
		// The list could run code of its owner.
		{"a schema of the same name", "CREATE SCHEMA pglogical; CREATE VIEW pglogical.local_sync_status AS SELECT 1 / 0 AS sync_nspname, 1 / 0 AS sync_relname", false, "", ""},
		{"a list that is not the extension's", fakeApplier("pglogical") + "ALTER EXTENSION pglogical DROP TABLE pglogical.local_sync_status;" +
			strings.ReplaceAll(replicated, "%s", "pglogical"), false, "", "the extension pglogical is installed"},
	} {
		t.Run(tt.name, func(t *testing.T) {
			d := pg.database(t, deptSchema, tt.sql)
			r := deptResource()
			r.NoPromise = tt.none
			var found *schema
			err := pgx.BeginTxFunc(t.Context(), d.conn, pgx.TxOptions{IsoLevel: pgx.RepeatableRead, AccessMode: pgx.ReadOnly}, func(tx pgx.Tx) (err error) {
				found, err = readSchema(t.Context(), tx, origin.NewSet([]resource.Resource{r}))
				return err
			})
			if err != nil {
				t.Fatal(err)
			}
			c := found.resources[0]
			switch {
			case tt.refused == "" && c.Err != nil:
				t.Errorf("refused: %v", c.Err)
			case tt.refused != "" && (c.Err == nil || !strings.Contains(c.Err.Problem, tt.refused)):
				t.Errorf("error %v; expected %q", c.Err, tt.refused)
			}
			if warnings := strings.Join(c.Warnings, " "); tt.refused == "" && (warnings != "") != (tt.warns != "") || !strings.Contains(warnings, tt.warns) {
				t.Errorf("warnings %q; expected %q", warnings, tt.warns)
			}
		})
	}
}

// An extension that is installed while the stream runs is noticed.
func TestStreamNoticesAppliersBelowTriggers(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.exec(strings.ReplaceAll(fakeApplier("pglogical")+"INSERT INTO pglogical.local_sync_status VALUES ('d', 1, 'public', 'task', 'r')", "\n", " "))
	s.advance()
	if why := s.sink.promise(); !strings.Contains(why, "pglogical replicates into table public.task") {
		t.Errorf("promise: %q; expected it to be broken by pglogical", why)
	}
}
