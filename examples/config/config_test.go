package config_test

import (
	"net"
	"net/http"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// shop is the schema that postgres.yaml serves.
const shop = `
CREATE TABLE customer (id int PRIMARY KEY, name text);
CREATE TABLE orders (region text, order_no int, customer int REFERENCES customer, PRIMARY KEY (region, order_no));
CREATE TABLE order_line (line_no int PRIMARY KEY, region text, order_no int, product text, price numeric,
	FOREIGN KEY (region, order_no) REFERENCES orders);
CREATE TABLE rate (currency text PRIMARY KEY, value numeric);
INSERT INTO customer VALUES (42, 'Ann');
INSERT INTO orders VALUES ('emea', 17, 42);
INSERT INTO order_line VALUES (1, 'emea', 17, 'lamp', 19.90);
INSERT INTO rate VALUES ('EUR', 1.25);
`

// anyPorts changes the listeners of a configuration to free ports and keeps everything else.
func anyPorts(t *testing.T, c *config.Config) {
	t.Helper()
	free := func(address string) string {
		host, _, err := net.SplitHostPort(address)
		if err != nil {
			t.Fatal(err)
		}
		return net.JoinHostPort(host, "0")
	}
	for _, all := range []config.Listeners{c.Frontends.HTTP, c.Frontends.Redis} {
		for i := range all {
			if _, unix := all[i].Unix(); !unix {
				all[i].Address = free(all[i].Address)
			}
		}
	}
	if c.Admin.Address != "" {
		c.Admin.Address = free(c.Admin.Address)
	}
}

// here returns the address at which this machine reaches a port that may be bound on every
// interface.
func here(t *testing.T, bound net.Addr) string {
	t.Helper()
	_, port, err := net.SplitHostPort(bound.String())
	if err != nil {
		t.Fatal(err)
	}
	return net.JoinHostPort("127.0.0.1", port)
}

// TestListenersOfOtherMachines: the settings that the files and the chart show for listeners that
// other machines can reach have that effect.
func TestListenersOfOtherMachines(t *testing.T) {
	testkit.NoLeaks(t)
	data := t.TempDir()
	if err := demo.Create(filepath.Join(data, "demo.db"), 1); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DATA", filepath.ToSlash(data))
	c, err := config.Load("minimal.yaml")
	if err != nil {
		t.Fatal(err)
	}
	c.Frontends.HTTP = config.Listeners{{Address: "0.0.0.0:0", Open: true}}
	c.Admin = config.Admin{Address: "0.0.0.0:0", AllowRemote: true}
	g, err := gateway.New(c, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	defer g.Shutdown(t.Context())
	client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	for _, test := range []struct {
		bound net.Addr
		path  string
	}{{g.HTTPAddr(), "/openapi.json"}, {g.AdminAddr(), "/live"}} {
		if ip := test.bound.(*net.TCPAddr).IP; !ip.IsUnspecified() {
			t.Errorf("%s listens on %v, want every interface", test.path, test.bound)
		}
		response, err := client.Get("http://" + here(t, test.bound) + test.path)
		if err != nil {
			t.Fatal(err)
		}
		response.Body.Close()
		if response.StatusCode != http.StatusOK {
			t.Errorf("%s: %s", test.path, response.Status)
		}
	}
}

func TestConfigurationsOfSQLiteAndPostgresAreServed(t *testing.T) {
	files, err := filepath.Glob("*.yaml")
	if err != nil || len(files) < 3 {
		t.Fatal(files, err)
	}
	const packaged = "../../deploy/package/slipstream.yaml"
	files = append(files, packaged)
	data := t.TempDir()
	if err := demo.Create(filepath.Join(data, "demo.db"), 1); err != nil {
		t.Fatal(err)
	}
	t.Setenv("DATA", filepath.ToSlash(data))
	pg := testkit.StartPostgres(t)
	pg.PSQL(t, shop)
	t.Setenv("SHOP_URL", pg.URL)
	for _, file := range files {
		t.Run(file, func(t *testing.T) {
			testkit.NoLeaks(t)
			c, err := config.Load(file)
			if err != nil {
				t.Fatal(err)
			}
			anyPorts(t, c)
			if err := c.Validate(); err != nil { // the listeners must be valid
				t.Fatal(err)
			}
			if file == packaged {
				c.Origin.URL = strings.Replace(c.Origin.URL, "/var/lib/slipstream", filepath.ToSlash(data), 1)
			}
			for i := range c.Resources {
				c.Resources[i].OnStale = config.Reload // there are no triggers
			}
			if file == "postgres.yaml" { // its statements should be checked, too
				if err := gateway.ApplyTriggers(t.Context(), c, gateway.DatabaseOptions{Definer: testkit.Definer}); err != nil {
					t.Fatal(err)
				}
			}
			g, err := gateway.New(c, gateway.Options{})
			if err != nil {
				t.Fatal(err)
			}
			if err := g.Start(t.Context()); err != nil {
				t.Fatal(err)
			}
			defer g.Shutdown(t.Context())
			client := http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
			for _, r := range c.Resources {
				path := "/" + r.Name + "/42"
				switch r.Name {
				case "orders":
					path = "/orders/emea/17"
				case "rates":
					path = "/rates/EUR"
				}
				response, err := client.Get("http://" + here(t, g.HTTPAddr()) + path)
				if err != nil {
					t.Fatal(err)
				}
				response.Body.Close()
				if response.StatusCode != http.StatusOK {
					t.Errorf("%s: %s", path, response.Status)
				}
			}
		})
	}
}

// TestEveryFieldIsShown: every field of the parser must be explained in production.yaml, or in
// postgres.yaml if only PostgreSQL has it.
func TestEveryFieldIsShown(t *testing.T) {
	t.Setenv("DATA", "/data")
	t.Setenv("SHOP_URL", "postgres://db/shop")
	shown := ""
	for _, file := range []string{"production.yaml", "postgres.yaml"} {
		c, err := config.Load(file)
		if err != nil {
			t.Fatal(err)
		}
		text, err := os.ReadFile(file)
		if err != nil {
			t.Fatal(err)
		}
		shown += string(text)
		c.Origin.Notify = c.Origin.StreamURL != "" // so that all fields are written
		if file == "production.yaml" {             // whose comments show fields that need files or a collector
			tls := config.TLS{Cert: "a", Key: "a", Clients: "a"}
			c.Admin = config.Admin{Address: "unix:a", Mode: 0o660, Owner: "a", TLS: tls, Plaintext: true, AllowRemote: true, Token: "a",
				Metrics: config.Listener{Address: "a:1", TLS: tls}, NoProfiles: true}
			c.Log.Audit = "a"
			c.Resources[0].Access = &config.Access{Keys: []string{"*"}, JWT: true, Claims: map[string][]string{"scope": {"a"}}}
			c.Auth = config.Auth{Keys: "a", JWT: config.JWT{Keys: "a", Issuer: "a", Audience: "a", Algorithms: []string{"RS256"}, Leeway: 1}}
			c.Tracing, c.HTTP.CORS.Credentials = config.Tracing{Endpoint: "a", Sample: 1, Service: "a"}, true
		}
		for line := range strings.Lines(string(c.Marshal())) {
			name, _, _ := strings.Cut(strings.TrimLeft(line, " -"), ":")
			if !strings.Contains(shown, name+":") {
				t.Errorf("%s does not show %s", file, name)
			}
		}
	}
}
