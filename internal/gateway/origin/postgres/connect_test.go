package postgres

import (
	"context"
	"errors"
	"io"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/jackc/pgx/v5/pgproto3"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// strictPooler is a proxy that refuses what PgBouncer refuses: startup parameters
// other than those that it tracks. It returns its address.
func strictPooler(t *testing.T, pg *testkit.Postgres) string {
	t.Helper()
	server := strings.Split(strings.TrimPrefix(pg.URL, "postgres://postgres@"), "/")[0]
	return testkit.Serve(t, func(client net.Conn, _ int) { relay(client, server) }).Addr
}

func relay(client net.Conn, server string) {
	defer client.Close()
	backend := pgproto3.NewBackend(client, client)
	startup, err := backend.ReceiveStartupMessage()
	if err != nil {
		return
	}
	message, ok := startup.(*pgproto3.StartupMessage)
	if !ok {
		return
	}
	for name := range message.Parameters {
		switch strings.ToLower(name) {
		case "user", "database", "client_encoding", "datestyle", "timezone", "standard_conforming_strings", "application_name":
		default:
			backend.Send(&pgproto3.ErrorResponse{Severity: "FATAL", SeverityUnlocalized: "FATAL", Code: "08P01", Message: "unsupported startup parameter: " + name})
			_ = backend.Flush()
			return
		}
	}
	up, err := net.Dial("tcp", server)
	if err != nil {
		return
	}
	defer up.Close()
	text, err := message.Encode(nil)
	if err != nil {
		return
	}
	if _, err := up.Write(text); err != nil {
		return
	}
	go func() { _, _ = io.Copy(up, client); _ = up.Close() }() // ends with the client, or when relay returns
	_, _ = io.Copy(client, up)
}

// A pooler that accepts few startup parameters gets only those, and settings that
// differ on the server are reported.
func TestPoolerThatRefusesSettings(t *testing.T) {
	pg := testkit.StartPostgres(t)
	runScript(t, pg.URL, "film.sql")
	address := strictPooler(t, pg)
	url := "postgres://postgres@" + address + "/postgres?sslmode=disable"
	o := openOrigin(t, Config{URL: url}, filmResources()...)
	if body := loadOne(t, o, "1"); !strings.Contains(string(body), `"film_id":1,`) {
		t.Errorf("got %s", body)
	}
	warnings := strings.Join(o.Warnings(), "\n")
	for _, want := range []string{"ALTER ROLE postgres SET jit = 'off'", "ALTER ROLE postgres SET statement_timeout = '10000'", "SET \"IntervalStyle\" = 'iso_8601'"} {
		if !strings.Contains(strings.ReplaceAll(warnings, "SET IntervalStyle", `SET "IntervalStyle"`), want) {
			t.Errorf("no warning %s in\n%s", want, warnings)
		}
	}
	if strings.Contains(warnings, "bytea_output") {
		t.Errorf("a warning about a setting that is correct: %s", warnings)
	}
	conn, err := o.connectOne(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if zone := scan[string](t, conn, "SHOW timezone"); zone != "UTC" {
		t.Errorf("time zone %s", zone)
	}
	// Following the warnings makes them disappear.
	for line := range strings.Lines(warnings) {
		if _, statement, ok := strings.Cut(strings.TrimSpace(line), ": ALTER "); ok {
			runScript(t, pg.URL, "ALTER "+statement)
		}
	}
	if again := openOrigin(t, Config{URL: url}, filmResources()...).Warnings(); len(again) > 0 {
		t.Errorf("still %q", again)
	}
}

func TestSettingsArePinned(t *testing.T) {
	pg := freshDatabase(t)
	o := openOrigin(t, Config{URL: pg.url + "&timezone=Asia/Kathmandu&bytea_output=escape&application_name=mine&jit=on", StatementTimeout: 3 * time.Second})
	conn, err := o.connectOne(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	for name, want := range map[string]string{
		"timezone": "UTC", "datestyle": "ISO, MDY", "bytea_output": "hex", "extra_float_digits": "1", "intervalstyle": "iso_8601", "client_encoding": "UTF8",
		"statement_timeout": "3s", "plan_cache_mode": "force_generic_plan",
		"application_name": "mine", "jit": "on", // what the URL may set
	} {
		if got := scan[string](t, conn, "SHOW "+name); got != want {
			t.Errorf("%s is %s, want %s", name, got, want)
		}
	}
}

// Of several hosts, the one that accepts writes is used.
func TestSeveralHosts(t *testing.T) {
	first, second := testkit.StartPostgres(t, "default_transaction_read_only=on"), testkit.StartPostgres(t)
	hosts := strings.Split(strings.TrimPrefix(first.URL, "postgres://postgres@"), "/")[0] + "," + strings.Split(strings.TrimPrefix(second.URL, "postgres://postgres@"), "/")[0]
	o := openOrigin(t, Config{URL: "postgres://postgres@" + hosts + "/postgres?sslmode=disable"})
	conn, err := o.connectOne(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	defer conn.Close(context.WithoutCancel(t.Context()))
	if port := scan[int](t, conn, "SELECT current_setting('port')::int"); port != second.Port {
		t.Errorf("connected to port %d, want %d", port, second.Port)
	}
}

func TestUnreachableAndMisconfigured(t *testing.T) {
	pg := testkit.StartPostgres(t)
	depts := []resource.Resource{{Name: "depts", Key: []string{"deptno"}, Root: resource.Node{Table: "dept"}}}
	for name, tt := range map[string]struct {
		url, want   string
		unavailable bool
	}{
		"no url":      {"postgres://:hunter2@[", "cannot parse", false},
		"nobody":      {"postgres://postgres:hunter2@127.0.0.1:1/postgres?sslmode=disable", "refused", true},
		"no database": {strings.Replace(pg.URL, "/postgres?", "/nowhere?", 1), "check the name of the database", true},
		"no role":     {strings.Replace(pg.URL, "postgres@", "ghost:hunter2@", 1), "check user, password and pg_hba.conf", true},
	} {
		_, err := Open(t.Context(), Config{URL: tt.url}, depts)
		if err == nil || errors.Is(err, cache.ErrUnavailable) != tt.unavailable || !strings.Contains(err.Error(), tt.want) || strings.Contains(err.Error(), "hunter2") || strings.Contains(err.Error(), "\n") {
			t.Errorf("%s: %v; want %q in one line, unavailable: %v", name, err, tt.want, tt.unavailable)
		}
	}
}
