package postgres

import (
	"fmt"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// A change that restores a promise may be in no digest.
func TestStreamRegainsThePromiseWhateverWasMissing(t *testing.T) {
	for name, sql := range map[string][2]string{
		"index":    {"DROP INDEX slipstream.change_xid", "CREATE INDEX change_xid ON slipstream.change (xid)"},
		"function": {"ALTER FUNCTION " + trimCall + "(interval, bigint, int) RENAME TO other", "ALTER FUNCTION slipstream.other(interval, bigint, int) RENAME TO " + quoteName(trimBare)},
		"role":     {"CREATE ROLE g; CREATE ROLE r LOGIN; GRANT SELECT ON dept, emp, task TO r; GRANT USAGE ON SCHEMA slipstream TO r; GRANT SELECT ON ALL TABLES IN SCHEMA slipstream TO g; GRANT EXECUTE ON ALL FUNCTIONS IN SCHEMA slipstream TO r", "GRANT g TO r"},
	} {
		t.Run(name, func(t *testing.T) {
			s := startStreamed(t)
			s.apply()
			s.exec(sql[0])
			if name == "role" {
				s.origin = openOrigin(t, Config{URL: strings.Replace(s.url, "postgres@", "r@", 1)}, streamedResource())
			}
			s.run()
			if why := s.sink.promise(); why == "" {
				t.Fatal("the promise holds")
			}
			s.exec(sql[1])
			testkit.Eventually(t, time.Minute, func() error {
				if why := s.sink.promise(); why != "" {
					return fmt.Errorf("promise: %s", why)
				}
				return nil
			})
		})
	}
}

// A foreign trigger on the change table could suppress recorded rows. PostgreSQL
// records only the first trigger in pg_class.
func TestStreamNoticesTriggersOnTheChangeTable(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.exec(`CREATE FUNCTION swallow() RETURNS trigger LANGUAGE plpgsql AS 'BEGIN RETURN NULL; END';
		CREATE TRIGGER swallow BEFORE INSERT ON slipstream.change FOR EACH ROW EXECUTE FUNCTION swallow(); DROP TRIGGER swallow ON slipstream.change`)
	s.run()
	if why := s.sink.promise(); why != "" {
		t.Fatalf("promise: %s", why)
	}
	s.exec("CREATE TRIGGER swallow BEFORE INSERT ON slipstream.change FOR EACH ROW EXECUTE FUNCTION swallow()")
	s.advance()
	if why := s.sink.promise(); !strings.Contains(why, "slipstream.change differs from what the resources need") {
		t.Errorf("promise: %q", why)
	}
}

// The server's statement_timeout ends a poll before the stream's own patience, and
// that must count, too: otherwise a poll that takes too long is retried forever.
func TestStreamGivesUpWhatTheServerTimesOut(t *testing.T) {
	s := startStreamed(t)
	s.stream = s.origin.Stream(func() time.Duration { return 0 })
	for range slowPolls {
		s.stream.failed(fmt.Errorf("poll: %w", &pgconn.PgError{Code: "57014"}))
	}
	if s.stream.timeouts != slowPolls {
		t.Errorf("%d timeouts, want %d", s.stream.timeouts, slowPolls)
	}
}

// The survey does not wait long for locks: an ALTER TABLE that has locked one table
// and needs another must not become the victim of a deadlock with it.
func TestSurveyDoesNotHoldUpMigrations(t *testing.T) {
	s := startStreamed(t)
	s.apply()
	s.run()
	s.expect("*")
	// A change to derive through emp and dept: the derivation locks emp first.
	migration := s.dial(t.Context())
	exec := func(sql string) {
		t.Helper()
		if _, err := migration.Exec(t.Context(), sql); err != nil {
			t.Fatalf("%s: %v", sql, err)
		}
	}
	exec("BEGIN; ALTER TABLE dept ADD COLUMN extra int")
	s.exec("INSERT INTO task VALUES (1000, 6, 'x')")
	time.Sleep(pollTimeout + 1500*time.Millisecond) // past the deadlock check of any waiter
	began := time.Now()
	exec("ALTER TABLE emp ADD COLUMN extra int")
	if took := time.Since(began); took > time.Second {
		t.Errorf("an ALTER TABLE waited for %v", took)
	}
	time.Sleep(2 * time.Second)
	exec("COMMIT")
	s.expect("*")
	if why := s.sink.promise(); why != "" {
		t.Errorf("promise: %s", why)
	}
}
