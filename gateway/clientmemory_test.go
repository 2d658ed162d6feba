package gateway_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// The memory that connections hold counts toward the memory limit and is in the
// metrics.
func TestMemoryLimitIncludesClients(t *testing.T) {
	const least = 4 << 20
	path := newDatabase(t, writeAhead+`CREATE TABLE dept (deptno INTEGER PRIMARY KEY, dname TEXT); INSERT INTO dept VALUES (1, 'a');`)
	cfg := configure(t, path, "resources: { depts: { table: dept, key: [deptno] } }\n")
	cfg.Frontends.Redis = config.ListenAt("127.0.0.1:0")
	s := serve(t, cfg)
	before := s.gateway.MemoryLimit()
	one := fmt.Sprintf("*2\r\n$4\r\nECHO\r\n$60000\r\n%s\r\n", strings.Repeat("x", 60_000))
	text := []byte(strings.Repeat(one, 200))
	for range 30 {
		c, err := net.Dial("tcp", s.gateway.RedisAddr().String())
		if err != nil {
			t.Fatal(err)
		}
		defer c.Close()
		go func() { _, _ = c.Write(text) }() // ends when the connection is closed
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		used := int64(s.metric("slipstream_client_memory_bytes"))
		if grown := s.gateway.MemoryLimit() - before; used < least || grown < least {
			return fmt.Errorf("%d bytes are held, and the limit has grown by %d, want %d or more of both", used, grown, least)
		}
		return nil
	})
	testkit.Eventually(t, patience, func() error {
		page := s.budgets()
		for _, b := range page.Budgets {
			if b.Name == "client_memory" && b.Used >= least && b.Limit == int64(s.metric("slipstream_client_memory_limit_bytes")) {
				return nil
			}
		}
		return fmt.Errorf("the dashboard shows %+v, want client memory of %d bytes or more", page.Budgets, least)
	})
}

// shownBudgets is what the tests read of /dashboard.json.
type shownBudgets struct {
	Budgets []struct {
		Name, Frontend string
		Used, Limit    int64
	}
	Rules []struct {
		Frontend, Rule, Effect string
		Total                  float64
	}
}

func (s *served) budgets() (page shownBudgets) {
	s.t.Helper()
	a := s.do(http.MethodGet, s.admin+"/dashboard.json")
	if err := json.Unmarshal([]byte(a.body), &page); err != nil {
		s.t.Fatalf("%v in %.200s", err, a.body)
	}
	return page
}

// The dashboard and the metrics say by which rule clients were refused and closed, and how
// much of each budget is left.
func TestRulesShow(t *testing.T) {
	cfg := configure(t, newDatabase(t, writeAhead+company), deptResource+
		"http: { limits: { header_timeout: 250ms, client: { rate: 0.001, burst: 3 } } }\n")
	testRulesShow(t, cfg)
}

// The same holds with only net/http.
func TestRulesShowOverNetHTTP(t *testing.T) {
	cfg := configure(t, newDatabase(t, writeAhead+company), deptResource+
		"http: { engine: net/http, limits: { header_timeout: 250ms, client: { rate: 0.001, burst: 3 } } }\n")
	testRulesShow(t, cfg)
}

func testRulesShow(t *testing.T, cfg *config.Config) {
	cfg.Frontends.Redis = config.ListenAt("127.0.0.1:0")
	cfg.Redis.Limits.Client = cfg.HTTP.Limits.Client
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg)
	s.awaitReady()
	for range 5 {
		s.get("/depts/1")
	}
	partial := s.dial()
	defer partial.Close()
	c, err := net.Dial("tcp", s.gateway.RedisAddr().String())
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	for conn, text := range map[net.Conn]string{partial: "GET /depts/1 HTTP/1.1\r\nHost: a", c: strings.Repeat("GET depts:1\r\n", 9)} {
		if _, err := io.WriteString(conn, text); err != nil {
			t.Fatal(err)
		}
	}
	want := map[string]string{
		"http client throttled":  "slipstream_throttled_total{frontend=\"http\",rule=\"client\"}",
		"redis client throttled": "slipstream_throttled_total{frontend=\"redis\",rule=\"client\"}",
		"http partial closed":    "slipstream_engine_closes_total{frontend=\"http\",reason=\"partial\"}",
	}
	testkit.Eventually(t, patience, func() error {
		page, metrics := s.budgets(), s.do(http.MethodGet, s.admin+"/metrics").body
		got := map[string]float64{}
		for _, r := range page.Rules {
			got[r.Frontend+" "+r.Rule+" "+r.Effect] = r.Total
		}
		for name, metric := range want {
			if line := fmt.Sprintf("\n%s %v\n", metric, got[name]); got[name] < 1 || !strings.Contains(metrics, line) {
				return fmt.Errorf("%s: the dashboard shows %v, and the metrics have no line %q", name, page.Rules, line)
			}
		}
		return nil
	})
	limits := map[string]int64{}
	for _, b := range s.budgets().Budgets {
		limits[b.Name+" "+b.Frontend] = b.Limit
	}
	for name, metric := range map[string]string{
		"client_memory ": "slipstream_client_memory_limit_bytes", "connections http": "slipstream_frontend_connections_limit{frontend=\"http\"}",
		"connections redis": "slipstream_frontend_connections_limit{frontend=\"redis\"}", "large_answers http": "slipstream_frontend_large_pending_limit_bytes{frontend=\"http\"}",
		"large_answers redis": "slipstream_frontend_large_pending_limit_bytes{frontend=\"redis\"}",
		"streams http":        "slipstream_frontend_budget_limit{budget=\"streams\",frontend=\"http\"}",
		"loading http":        "slipstream_frontend_budget_limit{budget=\"loading\",frontend=\"http\"}",
		"waiting redis":       "slipstream_frontend_budget_limit{budget=\"waiting\",frontend=\"redis\"}",
	} {
		if line := fmt.Sprintf("\n%s %v\n", metric, float64(limits[name])); limits[name] == 0 || !strings.Contains(s.do(http.MethodGet, s.admin+"/metrics").body, line) {
			t.Errorf("%s: the dashboard shows a limit of %d, and the metrics have no line %q", name, limits[name], line)
		}
	}
}
