package freshness

import (
	"fmt"
	"net/http"
	"os"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// TestPostgresPurgeOutlivesAKill: after a purge was acknowledged with 200, no process serves purged
// documents from disk, however the acknowledging process ended.
func TestPostgresPurgeOutlivesAKill(t *testing.T) {
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	g := shopConfig(t, pg.URL)
	text, err := os.ReadFile(g.file)
	if err != nil {
		t.Fatal(err)
	}
	text = fmt.Appendf(text, "tiers: { memory: 16MiB, disk: { path: %q, size: 32MiB } }\n", t.TempDir())
	if err := os.WriteFile(g.file, text, 0o600); err != nil {
		t.Fatal(err)
	}
	blackbox.Expect(t, blackbox.ExitOK, "statements were run", "", "db", "apply", "-c", g.file)

	// source returns where an answer came from.
	source := func(path string) string {
		t.Helper()
		status, head, body, err := blackbox.Get(t.Context(), g.http+path)
		if err != nil || status != 200 {
			t.Fatalf("%s: %d %s %v", path, status, body, err)
		}
		return head.Get("Cache-Status")
	}
	const fromDisk = "slipstream; hit; detail=disk"
	paths := []string{"/depts/1", "/depts/2", "/counts/1", "/counts/2"}
	for _, tt := range []struct {
		query  string
		purged map[string]bool
	}{
		{"resource=depts&key=1", map[string]bool{"/depts/1": true}},
		{"resource=counts", map[string]bool{"/counts/1": true, "/counts/2": true}},
	} {
		// One process stores documents on disk, and the next one holds them only there.
		g.serve()
		g.await(g.admin+"/ready", 200, "true")
		for _, path := range paths {
			source(path)
		}
		testkit.Eventually(t, 20*time.Second, func() error {
			g.Kill()
			g.serve()
			g.await(g.admin+"/ready", 200, "true")
			for _, path := range paths {
				if from := source(path); from != fromDisk {
					time.Sleep(1500 * time.Millisecond) // a batch is written once a second
					return fmt.Errorf("%s: %s; expected the document on disk", path, from)
				}
			}
			return nil
		})
		answer, err := http.Post(g.admin+"/purge?"+tt.query, "", nil)
		if err != nil {
			t.Fatal(err)
		}
		answer.Body.Close()
		g.Kill()
		if answer.StatusCode != http.StatusOK {
			t.Fatalf("purge of %s: %s", tt.query, answer.Status)
		}
		g.serve()
		g.await(g.admin+"/ready", 200, "true")
		for _, path := range paths {
			if from := source(path); tt.purged[path] == strings.HasSuffix(from, "detail=disk") {
				t.Errorf("after the purge of %s and a kill, %s: %s", tt.query, path, from)
			}
		}
		g.Kill()
	}
}
