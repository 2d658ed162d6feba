package config_test

import (
	"io"
	"net/http"
	"net/url"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/goccy/go-yaml"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

const composed = "../../deploy/compose"

// service holds the fields of a service in compose.yaml that the tests check.
type service struct {
	ReadOnly    bool     `yaml:"read_only"`
	CapDrop     []string `yaml:"cap_drop"`
	SecurityOpt []string `yaml:"security_opt"`
	MemLimit    string   `yaml:"mem_limit"`
	Command     []string
	Environment map[string]string
	Volumes     []string
}

func readCompose(t *testing.T) map[string]service {
	t.Helper()
	text, err := os.ReadFile(filepath.Join(composed, "compose.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	var file struct{ Services map[string]service }
	if err := yaml.Unmarshal(text, &file); err != nil {
		t.Fatal(err)
	}
	return file.Services
}

// TestComposeExampleOverPostgresIsServed runs what the services of compose.yaml run, in order:
// init.sql, db apply as the owner, and serve as a role that only reads.
func TestComposeExampleOverPostgresIsServed(t *testing.T) {
	testkit.NoLeaks(t)
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, "DROP ROLE "+testkit.Definer) // because init.sql creates it
	t.Setenv("OWNER_PASSWORD", "a")
	t.Setenv("GATEWAY_PASSWORD", "b")
	sql, err := filepath.Abs(filepath.Join(composed, "init.sql"))
	if err != nil {
		t.Fatal(err)
	}
	pg.PSQL(t, `\i '`+sql+`'`)
	as := func(role, password string) string {
		u, err := url.Parse(pg.URL)
		if err != nil {
			t.Fatal(err)
		}
		u.User = url.UserPassword(role, password)
		return u.String()
	}
	t.Setenv("SHOP_URL", as("gateway", "b"))
	c, err := config.Load(filepath.Join(composed, "slipstream.yaml"))
	if err != nil {
		t.Fatal(err)
	}
	anyPorts(t, c)
	c.Tiers.Disk.Path = filepath.Join(t.TempDir(), "tier")
	command := readCompose(t)["apply"].Command
	after := func(flag string) string {
		i := slices.Index(command, flag)
		if i < 0 || i+1 == len(command) {
			t.Fatalf("the service apply runs %q, which does not contain %s", command, flag)
		}
		return command[i+1]
	}
	options := gateway.DatabaseOptions{URL: as("owner", "a"), GrantTo: after("--grant"), Definer: after("--definer")}
	if err := gateway.ApplyTriggers(t.Context(), c, options); err != nil {
		t.Fatal(err)
	}
	g, err := gateway.New(c, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer g.Shutdown(t.Context())
	for reasons := g.Ready(); len(reasons) > 0; reasons = g.Ready() {
		select {
		case <-t.Context().Done():
			t.Fatalf("not ready: %v", reasons)
		case <-time.After(10 * time.Millisecond):
		}
	}
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	response, err := client.Get("http://" + here(t, g.HTTPAddr()) + "/depts/42")
	if err != nil {
		t.Fatal(err)
	}
	defer response.Body.Close()
	body, err := io.ReadAll(response.Body)
	if err != nil || response.StatusCode != http.StatusOK || strings.Count(string(body), `"empno"`) != 10 {
		t.Errorf("%s %s, %v; want department 42 with ten employees", response.Status, body, err)
	}
}

// TestComposeExampleIsHardened: our services run with the intended restrictions, and mount files
// that exist.
func TestComposeExampleIsHardened(t *testing.T) {
	services := readCompose(t)
	for name, s := range services {
		for _, v := range s.Volumes {
			file, _, _ := strings.Cut(v, ":")
			if !strings.HasPrefix(file, ".") {
				continue // a volume
			}
			if _, err := os.Stat(filepath.Join(composed, file)); err != nil {
				t.Errorf("%s: %v", name, err)
			}
		}
		if name == "db" {
			continue
		}
		if !s.ReadOnly || !slices.Equal(s.CapDrop, []string{"ALL"}) || !slices.Contains(s.SecurityOpt, "no-new-privileges:true") {
			t.Errorf("%s: read_only %t, cap_drop %q, security_opt %q", name, s.ReadOnly, s.CapDrop, s.SecurityOpt)
		}
	}
	if services["gateway"].MemLimit == "" || len(services) != 3 {
		t.Errorf("%d services; the memory of the gateway is %q", len(services), services["gateway"].MemLimit)
	}
	if _, ok := services["gateway"].Environment["SLIPSTREAM_DB_URL"]; ok {
		t.Error("the gateway has the password of the owner")
	}
}
