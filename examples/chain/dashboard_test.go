package main

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"os"
	"regexp"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit/promtest"
)

// scrape returns the metrics at an address, or "" if the service is down.
func scrape(addr string) string {
	client := &http.Client{Timeout: patience}
	defer client.CloseIdleConnections()
	rsp, err := client.Get("http://" + addr + "/metrics")
	if err != nil {
		return ""
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err != nil || rsp.StatusCode != http.StatusOK {
		return ""
	}
	return string(text)
}

// A sample is what the metrics of a service must contain: a metric with its labels, and a value that matches. If the metric is empty, the
// service must be down.
type sample struct{ service, metric, value string }

// missing returns an error if metrics do not have one of the samples.
func missing(pages map[string]string, want []sample) error {
	for _, one := range want {
		page := pages[one.service]
		if one.metric == "" {
			if page != "" {
				return fmt.Errorf("%s has metrics", one.service)
			}
			continue
		}
		line := regexp.MustCompile("(?m)^" + regexp.QuoteMeta(one.metric) + " " + one.value + "$")
		if !line.MatchString(page) {
			return fmt.Errorf("%s has no %s %s, but\n%s", one.service, one.metric, one.value, related(page, one.metric))
		}
	}
	return nil
}

// related returns the samples of a metric.
func related(page, metric string) string {
	name, _, _ := strings.Cut(metric, "{")
	var all strings.Builder
	for line := range strings.Lines(page) {
		if strings.HasPrefix(line, name) {
			all.WriteString(line)
		}
	}
	return all.String()
}

// dashboard is the part of Grafana's model that the tests read.
type dashboard struct {
	Title, UID string
	Panels     []struct {
		ID                       int
		Type, Title, Description string
		GridPos                  struct{ X, Y, W, H int }
		Targets                  []struct{ Expr string }
	}
}

func readDashboard(t *testing.T) (d dashboard) {
	t.Helper()
	text, err := os.ReadFile("dashboard.json")
	if err != nil {
		t.Fatal(err)
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	return d
}

// checkDashboard reports metrics of the dashboard that the services do not expose.
func checkDashboard(t *testing.T, shown promtest.Exposed) {
	t.Helper()
	seen := 0
	for _, p := range readDashboard(t).Panels {
		for _, target := range p.Targets {
			for _, s := range promtest.Selectors(target.Expr) {
				seen++
				if problem := shown.Lacks(s); problem != "" {
					t.Errorf("dashboard.json, panel %s: %s", p.Title, problem)
				}
			}
		}
	}
	if seen < 15 {
		t.Errorf("only %d metrics were checked", seen)
	}
}

// The dashboard contains nothing that Grafana would reject or display incorrectly, and README.md explains each panel.
func TestDashboard(t *testing.T) {
	readme, err := os.ReadFile("README.md")
	if err != nil {
		t.Fatal(err)
	}
	d := readDashboard(t)
	if d.Title == "" || d.UID == "" || len(d.Panels) < 10 {
		t.Errorf("title %q, uid %q, %d panels", d.Title, d.UID, len(d.Panels))
	}
	ids, taken := map[int]bool{}, map[[2]int]string{}
	for _, p := range d.Panels {
		if ids[p.ID] || p.ID <= 0 {
			t.Errorf("%s: the ID %d is not unique", p.Title, p.ID)
		}
		ids[p.ID] = true
		for x := p.GridPos.X; x < p.GridPos.X+p.GridPos.W; x++ {
			for y := p.GridPos.Y; y < p.GridPos.Y+p.GridPos.H; y++ {
				if other := taken[[2]int{x, y}]; other != "" || x >= 24 {
					t.Fatalf("%s covers %d, %d, which is outside of the grid or belongs to %q", p.Title, x, y, other)
				}
				taken[[2]int{x, y}] = p.Title
			}
		}
		switch {
		case p.Type == "row":
		case p.Description == "" || len(p.Targets) == 0:
			t.Errorf("%s: the description %q, %d targets", p.Title, p.Description, len(p.Targets))
		case !strings.Contains(string(readme), "| "+p.Title+" |"):
			t.Errorf("README.md does not explain the panel %s", p.Title)
		}
	}
}
