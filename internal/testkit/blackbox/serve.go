package blackbox

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// DemoFile is the name of the demo's database, which is in the directory of its configuration.
const DemoFile = "demo.db"

// Get makes a GET request without keeping the connection. header holds alternating names and
// values.
func Get(ctx context.Context, url string, header ...string) (status int, head http.Header, body string, err error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, url, nil)
	if err != nil {
		return 0, nil, "", err
	}
	for i := 0; i < len(header); i += 2 {
		r.Header.Set(header[i], header[i+1])
	}
	r.Close = true
	response, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, nil, "", err
	}
	defer response.Body.Close()
	text, err := io.ReadAll(response.Body)
	return response.StatusCode, response.Header, string(text), err
}

// WriteFile writes a file in a new directory and returns its path.
func WriteFile(t testing.TB, name, text string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), name)
	Write(t, path, text)
	return path
}

// Write writes a file.
func Write(t testing.TB, path, text string) {
	t.Helper()
	if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
}

// Execute runs SQL on an SQLite file as another application would.
func Execute(t testing.TB, path, sql string) {
	t.Helper()
	db, err := sqlite3.OpenFlags(path, sqlite3.OPEN_READWRITE)
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Exec(sql); err != nil {
		t.Fatalf("%v\nin %s", err, sql)
	}
}

// DemoConfig writes the demo's configuration on free ports in a new directory, and returns its path
// and the URLs of its listeners.
func DemoConfig(t testing.TB) (file, http, admin string) {
	t.Helper()
	http, admin = fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	return WriteFile(t, "slipstream.yaml", demo.Config(DemoFile, http, admin)), "http://" + http, "http://" + admin
}

// DemoFiles is like DemoConfig, but also creates the database, without triggers.
func DemoFiles(t testing.TB) (file string) {
	t.Helper()
	file, _, _ = DemoConfig(t)
	if err := demo.Create(filepath.Join(filepath.Dir(file), DemoFile), 1); err != nil {
		t.Fatal(err)
	}
	return file
}

// Alive is a readiness probe of the admin listener's /live.
func Alive(admin string) func(context.Context) error { return answers(admin + "/live") }

// Ready is a readiness probe of the admin listener's /ready.
func Ready(admin string) func(context.Context) error { return answers(admin + "/ready") }

func answers(url string) func(context.Context) error {
	return func(ctx context.Context) error {
		status, _, body, err := Get(ctx, url)
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("%s: %d %s", url, status, body)
		}
		return err
	}
}

// Serving starts a gateway and waits until it serves.
func Serving(t testing.TB, file string, args ...string) *testkit.Process {
	t.Helper()
	p := testkit.Start(t, testkit.Command{Path: Program(), Args: append([]string{"serve", "-c", file}, args...)})
	testkit.Eventually(t, 30*time.Second, func() error {
		select {
		case <-p.Exited():
			t.Fatalf("the gateway has ended\n%s", p.Log())
		default:
		}
		if !strings.Contains(p.Log(), "msg=serving") {
			return fmt.Errorf("the gateway does not serve:\n%s", p.Log())
		}
		return nil
	})
	return p
}

// ReloadAnswer is the response of /reload.
type ReloadAnswer struct {
	Reloaded bool
	Changes  []struct{ Key, Old, New, Effect string }
	Warnings []string
	Error    string
	Restart  []string
	Mistakes []struct {
		Line, Column int
		Key, Message string
	}
}

// AskReload calls the admin listener's /reload.
func AskReload(t testing.TB, method, admin string) (status int, a ReloadAnswer) {
	t.Helper()
	r, err := http.NewRequestWithContext(t.Context(), method, admin+"/reload", nil)
	if err != nil {
		t.Fatal(err)
	}
	rsp, err := http.DefaultClient.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	if err := json.NewDecoder(rsp.Body).Decode(&a); err != nil {
		t.Fatal(err)
	}
	return rsp.StatusCode, a
}
