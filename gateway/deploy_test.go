package gateway_test

import (
	"encoding/json"
	"maps"
	"os"
	"path/filepath"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/goccy/go-yaml"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/promtest"
)

// rules is a file of alerts as Prometheus reads it.
type rules struct {
	Groups []struct {
		Name  string
		Rules []rule
	}
}

type rule struct {
	Alert, Expr, For    string
	Labels, Annotations map[string]string
}

// dashboard is the part of Grafana's model that the tests read.
type dashboard struct {
	Title, UID    string
	SchemaVersion int
	Templating    struct {
		List []struct {
			Name, Type string
			Query      any
		}
	}
	Annotations struct{ List []struct{ Expr string } }
	Panels      []panel
}

type panel struct {
	ID          int
	Type, Title string
	GridPos     struct{ X, Y, W, H int }
	Datasource  struct{ UID string }
	Targets     []struct{ RefID, Expr string }
}

// bound is a limit, or a count of what was throttled or closed because of one.
var bound = regexp.MustCompile(`^slipstream_(.*_)?(limit|limit_bytes|budget_bytes|throttled_total|closed_total|closes_total)$`)

// reads reports whether a panel shows a metric.
func (p *panel) reads(name string) bool {
	for _, target := range p.Targets {
		if slices.ContainsFunc(promtest.Selectors(target.Expr), func(s promtest.Selector) bool { return s.Name == name }) {
			return true
		}
	}
	return false
}

// everythingOn serves with everything that has metrics: a resource with a promise and one
// without.
func everythingOn(t *testing.T) *served {
	t.Helper()
	path := newDatabase(t, writeAhead+company)
	cfg := configure(t, path, deptResource+"  staff: { table: emp, key: [empno], promise: none }\n"+
		"log: { requests: requests.log }\ntiers: { disk: { path: tier, size: 32MiB } }\n")
	cfg.Frontends.Redis, cfg.Frontends.Thrift = config.ListenAt("127.0.0.1:0"), config.ListenAt("127.0.0.1:0")
	cfg.Redis.TLS = config.TLS{Cert: "cert.pem", Key: "key.pem"}
	gateway.WriteCertificate(t, filepath.Dir(path), 1)
	withCredentials(t, cfg)
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg)
	s.awaitReady()
	s.get("/depts/1")
	return s
}

// exposes returns what /metrics shows.
func (s *served) exposes() promtest.Exposed {
	s.t.Helper()
	all := promtest.Exposed{}
	if err := all.Add(s.do("GET", s.admin+"/metrics").body); err != nil {
		s.t.Fatal(err)
	}
	return all
}

// deployed returns a file of the directory deploy, or of docs.
func deployed(t *testing.T, name string) []byte {
	t.Helper()
	text, err := os.ReadFile(filepath.Join("..", filepath.FromSlash(name)))
	if err != nil {
		t.Fatal(err)
	}
	return text
}

// TestAlertsAndDashboardNameRealMetrics: the files in deploy query only metrics that a
// gateway exposes, and the dashboard shows every bound.
func TestAlertsAndDashboardNameRealMetrics(t *testing.T) {
	testkit.NoLeaks(t)
	shown := everythingOn(t).exposes()
	seen := 0
	expect := func(where, expr string) {
		for _, s := range promtest.Selectors(expr) {
			seen++
			if problem := shown.Lacks(s); problem != "" {
				t.Errorf("%s: %s", where, problem)
			}
		}
	}
	for _, r := range readRules(t) {
		expect(r.Alert, r.Expr)
	}
	d := readDashboard(t)
	for _, p := range d.Panels {
		for _, target := range p.Targets {
			expect(p.Title, target.Expr)
		}
	}
	for _, a := range d.Annotations.List {
		expect("annotation", a.Expr)
	}
	if seen < 100 {
		t.Errorf("only %d metrics were checked", seen)
	}
	bounds := 0
	for name := range shown {
		if !bound.MatchString(name) {
			continue
		}
		bounds++
		if !slices.ContainsFunc(d.Panels, func(p panel) bool { return p.reads(name) }) {
			t.Errorf("no panel of the dashboard shows %s", name)
		}
	}
	if bounds < 8 {
		t.Errorf("only %d metrics of bounds were found", bounds)
	}
	for name, labels := range map[string]map[string]string{
		"slipstream_hits_total":          {"shop": "1"},
		"slipstream_engine_closes_total": {"reason": "idle|bored"},
	} {
		if problem := shown.Lacks(promtest.Selector{Name: name, Labels: labels}); problem == "" {
			t.Errorf("%s: labels that are not there were found", name)
		}
	}
}

func readRules(t *testing.T) (all []rule) {
	t.Helper()
	var file rules
	if err := yaml.UnmarshalWithOptions(deployed(t, "deploy/prometheus/slipstream.rules.yml"), &file, yaml.Strict()); err != nil {
		t.Fatal(err)
	}
	for _, g := range file.Groups {
		all = append(all, g.Rules...)
	}
	return all
}

// TestEveryAlertHasARunbook: each alert has an entry in the runbook, and each entry an
// alert.
func TestEveryAlertHasARunbook(t *testing.T) {
	const (
		runbook = "docs/operations/night.md"
		page    = "https://github.com/slipstream-go/slipstream/blob/main/" + runbook + "#"
	)
	entries := map[string]string{}
	text := string(deployed(t, runbook))
	for _, part := range strings.Split(text, "\n### ")[1:] {
		name, entry, _ := strings.Cut(part, "\n")
		if strings.HasPrefix(name, "Slipstream") {
			entry, _, _ = strings.Cut(entry, "\n## ")
			entries[name] = entry
		}
	}
	alerts := map[string]bool{}
	for _, r := range readRules(t) {
		alerts[r.Alert] = true
		if want := page + strings.ToLower(r.Alert); r.Annotations["runbook_url"] != want {
			t.Errorf("%s: runbook_url is %q, want %q", r.Alert, r.Annotations["runbook_url"], want)
		}
		if s := r.Labels["severity"]; s != "critical" && s != "warning" {
			t.Errorf("%s: severity %q", r.Alert, s)
		}
		if r.Annotations["summary"] == "" || r.Annotations["description"] == "" || r.Expr == "" {
			t.Errorf("%s: no summary, description or expression", r.Alert)
		}
	}
	for name := range alerts {
		for _, part := range []string{"**Means**", "**Users**", "**Look**", "**Fix**", "**Silence**"} {
			if !strings.Contains(entries[name], part) {
				t.Errorf("%s: the entry of %s has no %s", runbook, name, part)
			}
		}
	}
	for _, name := range slices.Sorted(maps.Keys(entries)) {
		if !alerts[name] {
			t.Errorf("%s: there is no alert %s", runbook, name)
		}
	}
}

// TestEveryAlertFires: the tests of promtool contain each alert.
func TestEveryAlertFires(t *testing.T) {
	var file struct {
		Tests []struct {
			Cases []struct {
				Expr    string
				Samples []struct{ Labels string } `yaml:"exp_samples"`
			} `yaml:"promql_expr_test"`
		}
	}
	if err := yaml.Unmarshal(deployed(t, "deploy/prometheus/slipstream.test.yml"), &file); err != nil {
		t.Fatal(err)
	}
	fires := map[string]bool{}
	for _, test := range file.Tests {
		for _, c := range test.Cases {
			for _, sample := range c.Samples {
				for _, m := range regexp.MustCompile(`alertname=~?"([^"]*)"`).FindAllStringSubmatch(c.Expr+sample.Labels, -1) {
					for _, name := range strings.Split(m[1], "|") {
						fires[name] = true
					}
				}
			}
		}
	}
	for _, r := range readRules(t) {
		if !fires[r.Alert] {
			t.Errorf("deploy/prometheus/slipstream.test.yml: no case in which %s fires", r.Alert)
		}
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	if err := json.Unmarshal(deployed(t, "deploy/grafana/slipstream.json"), &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// TestDashboardCanBeImported: the dashboard has nothing that Grafana would refuse, repair
// or show wrongly.
func TestDashboardCanBeImported(t *testing.T) {
	d := readDashboard(t)
	if d.Title == "" || d.UID == "" || len(d.UID) > 40 || d.SchemaVersion < 36 {
		t.Errorf("title %q, uid %q, schema %d", d.Title, d.UID, d.SchemaVersion)
	}
	variables := []string{"__rate_interval", "__range"}
	for _, v := range d.Templating.List {
		variables = append(variables, v.Name)
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID <= 0 {
			t.Errorf("%s: the id %d is not unique", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s covers %d, %d, which %q covers, too, or which is outside the grid", p.Title, x, y, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		if p.Type == "row" {
			continue
		}
		if p.Datasource.UID != "${datasource}" || len(p.Targets) == 0 || p.Title == "" {
			t.Errorf("panel %d %q: data source %q, %d targets", p.ID, p.Title, p.Datasource.UID, len(p.Targets))
		}
		for _, target := range p.Targets {
			for _, m := range regexp.MustCompile(`\$(\w+)`).FindAllStringSubmatch(target.Expr, -1) {
				if !slices.Contains(variables, m[1]) {
					t.Errorf("%s: no variable $%s", p.Title, m[1])
				}
			}
		}
	}
	if len(d.Panels) < 30 {
		t.Errorf("only %d panels", len(d.Panels))
	}
}
