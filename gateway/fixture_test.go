package gateway_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net"
	"net/http"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/gateway"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// patience is how long tests wait for what must happen soon: the machine may be
// busy with other tests.
const patience = 10 * time.Second

// company is the schema that most tests serve; deptResource declares it.
const company = `
CREATE TABLE dept (deptno INTEGER PRIMARY KEY, dname TEXT);
CREATE TABLE emp (empno INTEGER PRIMARY KEY, deptno INTEGER REFERENCES dept (deptno), ename TEXT);
CREATE INDEX emp_dept ON emp (deptno);
WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < 300)
INSERT INTO dept SELECT i, 'dept ' || i FROM n;
INSERT INTO emp SELECT deptno + 1000, deptno, 'emp of ' || deptno FROM dept;
`

const deptResource = `
resources:
  depts: { table: dept, key: [deptno], children: { emps: { table: emp, order: [empno], columns: [empno, ename] } } }
`

// rollbackJournal makes a writer's exclusive lock block readers, which WAL would
// not.
const rollbackJournal = "PRAGMA journal_mode = DELETE;"

const writeAhead = "PRAGMA journal_mode = WAL;"

// newDatabase creates a database file and returns its path.
func newDatabase(t testing.TB, sql ...string) string {
	t.Helper()
	path := filepath.Join(t.TempDir(), "app.db")
	createDatabase(t, path, sql...)
	return path
}

func createDatabase(t testing.TB, path string, sql ...string) {
	t.Helper()
	db := connect(t, path, sqlite3.OPEN_READWRITE|sqlite3.OPEN_CREATE)
	defer db.Close()
	for _, s := range sql {
		run(t, db, s)
	}
}

// connect opens the database as another program would.
func connect(t testing.TB, path string, flags sqlite3.OpenFlag) *sqlite3.Conn {
	t.Helper()
	db, err := sqlite3.OpenFlags(path, flags)
	if err != nil {
		t.Fatal(err)
	}
	if err := db.BusyTimeout(patience); err != nil {
		t.Fatal(err)
	}
	return db
}

func run(t testing.TB, db *sqlite3.Conn, sql string) {
	t.Helper()
	if err := db.Exec(sql); err != nil {
		t.Fatalf("%v\nin %s", err, sql)
	}
}

// write runs SQL on a new connection and returns when the commit was acknowledged.
func write(t testing.TB, path string, sql ...string) (committed time.Time) {
	t.Helper()
	db := connect(t, path, sqlite3.OPEN_READWRITE)
	defer db.Close()
	for _, s := range sql {
		run(t, db, s)
	}
	return time.Now()
}

// lock holds the whole database until the function it returns is called.
func lock(t testing.TB, path string) (db *sqlite3.Conn, release func() time.Time) {
	t.Helper()
	db = connect(t, path, sqlite3.OPEN_READWRITE)
	run(t, db, "BEGIN EXCLUSIVE")
	released := false
	release = func() time.Time {
		if !released {
			released = true
			run(t, db, "COMMIT")
			db.Close()
		}
		return time.Now()
	}
	t.Cleanup(func() { release() })
	return db, release
}

// configure reads YAML about resources into a configuration over the database,
// on free ports.
func configure(t testing.TB, path, yaml string) *config.Config {
	t.Helper()
	text := "origin: { url: \"sqlite:" + filepath.Base(path) + "\" }\n" +
		"frontends: { http: \"127.0.0.1:0\" }\nadmin: \"127.0.0.1:0\"\n" + yaml
	cfg, err := config.Parse("test.yaml", []byte(text))
	if err != nil {
		t.Fatal(err)
	}
	cfg.Origin.Dir = filepath.Dir(path)
	return cfg
}

// served is a gateway that runs, and a client of it.
type served struct {
	t       testing.TB
	config  *config.Config
	gateway *gateway.Gateway
	client  *http.Client
	http    string // base URLs
	admin   string
}

// serve starts a gateway and drains it at the end of the test.
func serve(t testing.TB, cfg *config.Config) *served {
	t.Helper()
	g, err := gateway.New(cfg, gateway.Options{})
	if err != nil {
		t.Fatal(err)
	}
	return start(t, cfg, g)
}

// start starts a gateway and drains it at the end of the test.
func start(t testing.TB, cfg *config.Config, g *gateway.Gateway) *served {
	t.Helper()
	s := &served{t: t, config: cfg, gateway: g, client: &http.Client{
		Transport: &http.Transport{MaxIdleConnsPerHost: 64},
		Timeout:   2 * patience,
	}}
	t.Cleanup(func() {
		s.client.CloseIdleConnections()
		ctx, cancel := context.WithTimeout(context.Background(), patience)
		defer cancel()
		if err := g.Shutdown(ctx); err != nil {
			t.Errorf("shutdown: %v", err)
		}
	})
	if err := g.Start(t.Context()); err != nil {
		t.Fatal(err)
	}
	s.http = "http://" + g.HTTPAddr().String()
	s.admin = "http://" + g.AdminAddr().String()
	return s
}

// serveReady installs the triggers, serves, and waits until the promise holds.
func serveReady(t testing.TB, path, yaml string) *served {
	t.Helper()
	cfg := configure(t, path, yaml)
	if err := gateway.ApplyTriggers(t.Context(), cfg, gateway.DatabaseOptions{}); err != nil {
		t.Fatal(err)
	}
	s := serve(t, cfg)
	s.awaitReady()
	return s
}

// answer is a response.
type answer struct {
	status int
	head   http.Header
	body   string
}

func (a answer) String() string {
	return fmt.Sprintf("%d, Cache-Status %q, %.200s", a.status, a.head.Get("Cache-Status"), a.body)
}

func (a answer) hit() bool { return a.head.Get("Cache-Status") == "slipstream; hit" }

// problem returns the problem's status, or 0 if the answer is not one.
func (a answer) problem() int {
	var p struct {
		Title  string
		Status int
		Detail string
	}
	if a.head.Get("Content-Type") != "application/problem+json" || json.Unmarshal([]byte(a.body), &p) != nil || p.Title == "" || p.Detail == "" {
		return 0
	}
	return p.Status
}

func (s *served) do(method, url string) answer {
	s.t.Helper()
	a, err := s.try(s.t.Context(), method, url)
	if err != nil {
		s.t.Fatal(err)
	}
	return a
}

func (s *served) try(ctx context.Context, method, url string) (answer, error) {
	r, err := http.NewRequestWithContext(ctx, method, url, nil)
	if err != nil {
		return answer{}, err
	}
	rsp, err := s.client.Do(r)
	if err != nil {
		return answer{}, err
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	return answer{rsp.StatusCode, rsp.Header, string(body)}, err
}

func (s *served) get(path string) answer { s.t.Helper(); return s.do(http.MethodGet, s.http+path) }

func (s *served) ready() answer { s.t.Helper(); return s.do(http.MethodGet, s.admin+"/ready") }

func (s *served) awaitReady() {
	s.t.Helper()
	testkit.Eventually(s.t, patience, func() error {
		if a := s.ready(); a.status != http.StatusOK {
			return fmt.Errorf("/ready: %v", a)
		}
		return nil
	})
}

// awaitNotReady returns the page that says why.
func (s *served) awaitNotReady(why string) {
	s.t.Helper()
	testkit.Eventually(s.t, patience, func() error {
		if a := s.ready(); a.status != http.StatusServiceUnavailable || !strings.Contains(a.body, why) {
			return fmt.Errorf("/ready: %v; expected 503 that says %q", a, why)
		}
		return nil
	})
}

// awaitAnswer repeats the request until the answer has the status and the text.
func (s *served) awaitAnswer(path string, status int, text string) (last answer) {
	s.t.Helper()
	testkit.Eventually(s.t, patience, func() error {
		if last = s.get(path); last.status != status || !strings.Contains(last.body, text) {
			return fmt.Errorf("%s: %v; expected %d with %q", path, last, status, text)
		}
		return nil
	})
	return last
}

// cached repeats the request until the answer is a hit, and returns it.
func (s *served) cached(path string) (last answer) {
	s.t.Helper()
	testkit.Eventually(s.t, patience, func() error {
		if last = s.get(path); !last.hit() {
			return fmt.Errorf("%s: %v; expected a hit", path, last)
		}
		return nil
	})
	return last
}

// expectChange repeats the request until the text is there. The promise is that
// every GET that begins later than the freshness after the commit has it.
func (s *served) expectChange(path, text string, committed time.Time) {
	s.t.Helper()
	for {
		began := time.Now()
		a := s.get(path)
		if strings.Contains(a.body, text) {
			return
		}
		if age := began.Sub(committed); age > s.config.Freshness {
			s.t.Fatalf("GET %s, %v after the commit: %v; expected %q", path, age, a, text)
		}
		time.Sleep(10 * time.Millisecond)
	}
}

// metric returns the sum of a metric over its labels.
func (s *served) metric(name string) (sum float64) {
	s.t.Helper()
	page := s.do(http.MethodGet, s.admin+"/metrics")
	lines := regexp.MustCompile(`(?m)^`+name+`(?:\{[^}]*\})? (\S+)$`).FindAllStringSubmatch(page.body, -1)
	if lines == nil {
		s.t.Fatalf("/metrics has no %s", name)
	}
	for _, line := range lines {
		v, err := strconv.ParseFloat(line[1], 64)
		if err != nil {
			s.t.Fatal(err)
		}
		sum += v
	}
	return sum
}

func (s *served) statements() float64 {
	s.t.Helper()
	return s.metric("slipstream_load_statements_total")
}

// dial opens a connection to the frontend that the test reads and writes itself.
func (s *served) dial() net.Conn {
	s.t.Helper()
	c, err := net.Dial("tcp", s.gateway.HTTPAddr().String())
	if err != nil {
		s.t.Fatal(err)
	}
	if err := c.SetDeadline(time.Now().Add(2 * patience)); err != nil {
		s.t.Fatal(err)
	}
	return c
}
