package gateway

import (
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgconn"

	"github.com/slipstream-go/slipstream/gateway/config"
)

// TestPaceOfPostgres: the intervals and limits of the stream and the server follow
// from the resources.
func TestPaceOfPostgres(t *testing.T) {
	for _, test := range []struct {
		origin, resources string
		poll, check       time.Duration
		timeout           time.Duration
		connections       int
	}{
		{"", "a: { table: a, key: [a] }", 25 * time.Millisecond, 100 * time.Millisecond, 6 * time.Second, 4},
		{"", "a: { table: a, key: [a], freshness: 200ms }", 25 * time.Millisecond, 25 * time.Millisecond, 6 * time.Second, 4},
		{"", "a: { table: a, key: [a], freshness: 200ms, promise: none }", 25 * time.Millisecond, 100 * time.Millisecond, 6 * time.Second, 4},
		{", poll: 1s, connections: 7", "a: { table: a, key: [a], freshness: 10s, load: { timeout: 1m } }", time.Second, time.Second, 61 * time.Second, 7},
		{"", "a: { table: a, key: [a], load: { concurrency: 30 } }", 25 * time.Millisecond, 100 * time.Millisecond, 6 * time.Second, 16},
	} {
		cfg, err := config.Parse("test.yaml", []byte(`origin: { url: "postgres://db/shop"`+test.origin+" }\nresources:\n  "+test.resources+"\n"))
		if err != nil {
			t.Fatal(err)
		}
		got := postgresConfig(cfg, DatabaseOptions{GrantTo: "gateway", Definer: "definer", Adopt: true})
		if got.PollInterval != test.poll || got.CheckInterval != test.check || got.StatementTimeout != test.timeout ||
			got.Connections != test.connections || got.KeepChanges != 24*time.Hour || got.KeepBytes != 1<<30 || got.GrantTo != "gateway" || got.Definer != "definer" || !got.Adopt {
			t.Errorf("%s%s: %+v", test.resources, test.origin, got)
		}
	}
}

// TestOpenDatabaseRefuses options that make no sense, without contacting a server.
func TestOpenDatabaseRefuses(t *testing.T) {
	sqlite := &config.Config{Origin: config.Origin{URL: "sqlite:shop.db"}}
	postgres := &config.Config{Origin: config.Origin{URL: "postgres://db/shop"}}
	for _, test := range []struct {
		cfg     *config.Config
		options DatabaseOptions
		want    string
	}{
		{sqlite, DatabaseOptions{URL: "postgres://owner:hunter2@db/shop"}, "no roles"},
		{sqlite, DatabaseOptions{GrantTo: "gateway"}, "no roles"},
		{sqlite, DatabaseOptions{Definer: "definer"}, "no roles"},
		{sqlite, DatabaseOptions{Adopt: true}, "no roles"},
		{postgres, DatabaseOptions{URL: "sqlite:shop.db"}, "not a connection URL of PostgreSQL"},
		{postgres, DatabaseOptions{URL: "owner:hunter2@db/shop"}, "not a connection URL of PostgreSQL"},
		{&config.Config{Origin: config.Origin{URL: "mysql://app:hunter2@db/shop"}}, DatabaseOptions{}, "not supported"},
	} {
		_, err := OpenDatabase(t.Context(), test.cfg, test.options)
		if err == nil || !strings.Contains(err.Error(), test.want) || strings.Contains(err.Error(), "hunter2") {
			t.Errorf("%s with %+v: %v; expected %q", test.cfg.Origin.URL, test.options, err, test.want)
		}
	}
}

// TestDriverReadsURLsAlike: the configuration parses connection URLs itself. The
// driver must accept what it accepts, and find the password in the same place: then
// the redacted URL lacks only the password.
func TestDriverReadsURLsAlike(t *testing.T) {
	t.Setenv("PGPASSWORD", "")
	for _, url := range []string{
		"postgres://app:hunter2@db/shop", "postgresql://app:hunter%32@a:5432,b,[::1]:5433/shop?sslmode=disable", "postgres://:hunter2@db",
		"postgres://app:hunter2@/shop?host=/var/run/postgresql", "postgres://db/shop?user=app&p%61ssword=hunter2",
		"postgres://app:hunter2@%2Fvar%2Frun%2Fpostgresql/my%20shop?options=-c%20geqo%3Doff&application_name=a%26b",
	} {
		cfg := config.Config{Origin: config.Origin{URL: url}}
		if driver, err := cfg.Origin.Driver(); err != nil || driver != config.PostgreSQL {
			t.Errorf("%s: %q, %v", url, driver, err)
		}
		_, line, _ := strings.Cut(string(cfg.Redacted()), `url: "`)
		shown, _, _ := strings.Cut(line, `"`)
		was, err := pgconn.ParseConfig(url)
		if err != nil {
			t.Errorf("%s: the driver refuses it: %v", url, err)
			continue
		}
		is, err := pgconn.ParseConfig(shown)
		if err != nil || was.Password != "hunter2" || is.Password != "hidden" {
			t.Errorf("%s is shown as %s: password %q instead of %q, %v", url, shown, is.Password, was.Password, err)
			continue
		}
		if is.Host != was.Host || is.Port != was.Port || is.Database != was.Database || is.User != was.User || len(is.Fallbacks) != len(was.Fallbacks) {
			t.Errorf("%s is shown as %s, which leads elsewhere", url, shown)
		}
	}
}
