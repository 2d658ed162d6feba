package gateway

import (
	"bytes"
	"fmt"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/getkin/kin-openapi/openapi3"
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

// everything is what somebody may read whom no rule refuses.
func everything(int) bool { return true }

func parseConfig(t *testing.T, text string) *config.Config {
	t.Helper()
	cfg, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	return cfg
}

func readOpenAPI(t *testing.T, text []byte) *openapi3.T {
	t.Helper()
	doc, err := openapi3.NewLoader().LoadFromData(text)
	if err == nil {
		err = doc.Validate(t.Context(), openapi3.EnableExamplesValidation())
	}
	if err != nil {
		t.Fatalf("%v in %.5000s", err, text)
	}
	return doc
}

// TestOpenAPIFollowsTheConfiguration: what is configured about credentials, limits,
// batches and encodings is in the document.
func TestOpenAPIFollowsTheConfiguration(t *testing.T) {
	path := filepath.Join(t.TempDir(), "app.db")
	exec(t, path, "CREATE TABLE a (id INTEGER PRIMARY KEY, b TEXT)")
	open := func(text string) *openapi3.T {
		t.Helper()
		cfg := parseConfig(t, fmt.Sprintf("origin: { url: %q }\n", "sqlite:"+path)+text)
		db, err := OpenDatabase(t.Context(), cfg, DatabaseOptions{})
		if err != nil {
			t.Fatal(err)
		}
		defer db.Close()
		doc, err := OpenAPI(cfg, db)
		if err != nil {
			t.Fatal(err)
		}
		return readOpenAPI(t, doc)
	}
	plain := open("resources: { a: { table: a, key: [id] } }\n").Paths.Find("/a")
	if get := plain.Get; len(*get.Security) != 0 || get.Responses.Value("429") != nil || get.Responses.Value("200").Value.Headers["Content-Encoding"] == nil ||
		*plain.Parameters[0].Value.Schema.Value.MaxItems != 1000 {
		t.Errorf("without settings: %+v", get)
	}
	set := open(`http: { compression: [], batch: 7, limits: { client: { rate: 5 } } }
auth: { keys: keys.txt, jwt: { keys: jwks.json, audience: any } }
resources:
  all: { table: a, key: [id] }
  keys: { table: a, key: [id], access: { keys: [web] } }
  claims: { table: a, key: [id], access: { claims: { scope: [read] } } }
  both: { table: a, key: [id], access: { keys: ["*"], jwt: true }, promise: none }
`)
	for name, want := range map[string]string{"all": "[]", "keys": "[map[apiKey:[]]]", "claims": "[map[bearer:[]]]", "both": "[map[apiKey:[]] map[bearer:[]]]"} {
		path := set.Paths.Find("/" + name)
		if got := fmt.Sprint(*path.Get.Security); got != want {
			t.Errorf("%s: security %s, want %s", name, got, want)
		}
		if path.Get.Responses.Value("429") == nil || path.Get.Responses.Value("200").Value.Headers["Content-Encoding"] != nil ||
			*path.Parameters[0].Value.Schema.Value.MaxItems != 7 {
			t.Errorf("%s: %+v", name, path.Get)
		}
	}
}

// TestDescriptionFollowsTheSchema: a running gateway has no document before the
// database was reached, keeps it, and writes another when the tables change.
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
	// The stream's first look at the tables is another than that of the start.
	testkit.Eventually(t, 10*time.Second, func() error {
		if why := g.Ready(); why != nil {
			return fmt.Errorf("not ready: %q", why)
		}
		return nil
	})
	first := d.text(everything)
	readOpenAPI(t, first)
	if again := d.text(everything); &again[0] != &first[0] {
		t.Error("written twice for one schema")
	}
	exec(t, path, "ALTER TABLE a ADD COLUMN colour TEXT")
	testkit.Eventually(t, 10*time.Second, func() error {
		if !strings.Contains(string(d.text(everything)), `"colour"`) {
			return fmt.Errorf("the new column is missing in %s", d.text(everything))
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

// TestDescriptionsOfCallers: what somebody may not read is not there, neither its path nor its
// columns; each set of rights has its document written once, and few are kept.
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
	readOpenAPI(t, open)
	for _, word := range []string{"secret", "Secret", "serial", "salary"} {
		if bytes.Contains(open, []byte(word)) {
			t.Errorf("the document of the others holds %q", word)
		}
		if word != "Secret" && !bytes.Contains(all, []byte(word)) {
			t.Errorf("the document of everything lacks %q", word)
		}
	}
	if paths := readOpenAPI(t, d.text(only())).Paths; paths.Len() != 1 || paths.Find("/openapi.json") == nil {
		t.Errorf("somebody who may read nothing sees %v", paths.Map())
	}
	if again := d.text(only(0)); &again[0] != &open[0] {
		t.Error("written twice for the same rights")
	}
	for i := range 20 {
		readOpenAPI(t, d.text(only(i%10, i/10)))
	}
	if n := len(d.written.Load().texts); n != maxWritten {
		t.Errorf("%d documents are kept, want %d", n, maxWritten)
	}
}
