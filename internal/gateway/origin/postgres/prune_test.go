package postgres

import (
	"context"
	"log/slog"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// retries is a log handler that notes that prune retries.
type retries chan struct{}

func (r retries) Enabled(context.Context, slog.Level) bool { return true }
func (r retries) WithAttrs([]slog.Attr) slog.Handler       { return r }
func (r retries) WithGroup(string) slog.Handler            { return r }
func (r retries) Handle(_ context.Context, record slog.Record) error {
	if strings.Contains(record.Message, "prune retries") {
		select {
		case r <- struct{}{}:
		default:
		}
	}
	return nil
}

// A locked table only delays its own triggers, and is retried.
func TestPruneGoesTableByTableAndTriesAgain(t *testing.T) {
	d := freshDatabase(t, deptSchema)
	mustApply(t, d.origin(t, Config{}, "", deptResource()))
	again := make(retries, 1)
	none := d.origin(t, Config{Logger: slog.New(again)}, "")
	writer := d.connect(t, "")
	execOn(t, writer, `BEGIN; UPDATE emp SET ename = 'x'`)
	result := make(chan error, 1)
	var dropped []string
	// Ends with the prune; waited for at the channel.
	go func() {
		result <- none.Prune(t.Context(), nil, func(s origin.Statement) { dropped = append(dropped, s.SQL) })
	}()
	select {
	case <-again:
	case err := <-result:
		t.Fatalf("prune did not retry: %v", err)
	}
	if got := definitions(t, d, "dept") + "," + definitions(t, d, "emp"); got != ",depts" {
		t.Errorf("triggers of %s, want those of dept gone and those of emp there", got)
	}
	execOn(t, writer, `COMMIT`)
	if err := <-result; err != nil {
		t.Fatal(err)
	}
	if len(dropped) != 4+4+8 {
		t.Errorf("reported %q", dropped)
	}
	if n := d.text(t, `SELECT count(*) FROM pg_proc WHERE pronamespace = 'slipstream'::regnamespace`); n != "2" {
		t.Errorf("%s functions are left, want trim and renew", n)
	}
}

// A configuration that does not fit the database could need anything.
func TestPruneRefusesAConfigurationThatDoesNotFit(t *testing.T) {
	d := freshDatabase(t, deptSchema)
	o := d.origin(t, Config{Definer: testkit.Definer}, "", deptResource())
	mustApply(t, o)
	wrong := resource.Resource{Name: "emps", Key: []string{"nosuch"}, Root: resource.Node{Table: "emp"}}
	err := d.origin(t, Config{}, "").Prune(t.Context(), [][]resource.Resource{{wrong}}, func(s origin.Statement) { t.Errorf("ran %s", s.SQL) })
	if err == nil || !strings.Contains(err.Error(), "nosuch") {
		t.Errorf("prune: %v", err)
	}
}
