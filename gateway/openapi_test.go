package gateway

import (
	"bytes"
	"encoding/json"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

func exec(t *testing.T, path, sql string) {
	t.Helper()
	db, err := sqlite3.Open(path)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Exec("PRAGMA busy_timeout = 5000; " + sql); err != nil {
		t.Fatal(err)
	}
}

// everything is for a caller that may read all resources.
func everything(int) bool { return true }

func parseConfig(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

// readPaths returns the paths of a description; test/judges validates descriptions.
func readPaths(t *testing.T, text []byte) map[string]any {
	t.Helper()
	var doc struct{ Paths map[string]any }
	if err := json.Unmarshal(text, &doc); err != nil || doc.Paths == nil {
		t.Fatalf("%v in %.5000s", err, text)
	}
	return doc.Paths
}

// TestDescriptionFollowsTheSchema: a running gateway has no document before the
// database is reached, then keeps one, and writes another when the tables change.
func TestDescriptionFollowsTheSchema(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	exec(t, path, "CREATE TABLE a (id INTEGER PRIMARY KEY, b TEXT)")
	cfg := parseConfig(t, fmt.Sprintf("origin: { url: %q }\nfrontends: { http: \"127.0.0.1:0\" }\nadmin: \"127.0.0.1:0\"\nresources: { a: { table: a, key: [id] } }\n", "sqlite:"+path))
	if err := ApplyTriggers(t.Context(), cfg, DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	g, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Shutdown(t.Context())
	d := &description{config: g.config, ids: firstIDs(len(g.config.Resources)), origin: g.origin}
	if text := d.text(everything); text != nil {
		t.Errorf("before the database was reached: %.200s", text)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	// The stream reads the tables for the first time after the start did.
	testkit.Eventually(t, 10*time.Second, func() error {
		if why := g.Ready(); why != nil {
			return fmt.Errorf("not ready: %q", why)
		}
		return nil
	})
	first := d.text(everything)
	readPaths(t, first)
	if again := d.text(everything); &again[0] != &first[0] {
		t.Error("written twice for one schema")
	}
	exec(t, path, "ALTER TABLE a ADD COLUMN colour TEXT")
	testkit.Eventually(t, 10*time.Second, func() error {
		if !strings.Contains(string(d.text(everything)), `"colour"`) {
			return fmt.Errorf("the new column is missing from %s", d.text(everything))
		}
		return nil
	})
	db, err := OpenDatabase(t.Context(), cfg, DatabaseOptions{})
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if printed, err := OpenAPI(cfg, db); err != nil || !bytes.Equal(printed, d.text(everything)) {
		t.Errorf("the command prints another document: %v %.2000s", err, printed)
	}
}

// TestDescriptionsOfCallers: resources that a caller may not read are not in the document,
// neither their paths nor their columns; the document for each set of resources is written once,
// and few are kept.
func TestDescriptionsOfCallers(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	exec(t, path, "CREATE TABLE a (id INTEGER PRIMARY KEY, b TEXT); CREATE TABLE s (serial INTEGER PRIMARY KEY, salary TEXT)")
	text := fmt.Sprintf("origin: { url: %q }\nfrontends: { http: \"127.0.0.1:0\" }\nadmin: \"127.0.0.1:0\"\nresources:\n  a: { table: a, key: [id] }\n  secret: { table: s, key: [serial] }\n", "sqlite:"+path)
	for i := range 8 {
		text += fmt.Sprintf("  r%d: { table: a, key: [id] }\n", i)
	}
	cfg := parseConfig(t, text)
	if err := ApplyTriggers(t.Context(), cfg, DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	g, err := New(cfg, Options{})
	if err != nil {
		t.Fatal(err)
	}
	defer g.Shutdown(t.Context())
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	if err := g.AwaitReady(t.Context()); err != nil {
		t.Fatal(err)
	}
	d := &description{config: g.config, ids: firstIDs(len(g.config.Resources)), origin: g.origin}
	only := func(which ...int) func(int) bool { return func(i int) bool { return slices.Contains(which, i) } }
	open, all := d.text(only(0)), d.text(everything)
	readPaths(t, open)
	for _, word := range []string{"secret", "Secret", "serial", "salary"} {
		if bytes.Contains(open, []byte(word)) {
			t.Errorf("the document of the others holds %q", word)
		}
		if word != "Secret" && !bytes.Contains(all, []byte(word)) {
			t.Errorf("the document of everything lacks %q", word)
		}
	}
	if paths := readPaths(t, d.text(only())); len(paths) != 1 || paths["/openapi.json"] == nil {
		t.Errorf("a client without access sees %v", paths)
	}
	if again := d.text(only(0)); &again[0] != &open[0] {
		t.Error("written twice for the same rights")
	}
	for i := range 20 {
		readPaths(t, d.text(only(i%10, i/10)))
	}
	if n := len(d.written.Load().texts); n != maxWritten {
		t.Errorf("%d documents are kept, want %d", n, maxWritten)
	}
}
