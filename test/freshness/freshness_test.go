//go:build unix

package freshness

import (
	"bytes"
	"context"
	"encoding/json"
	"fmt"
	"os"
	"os/exec"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/ncruces/go-sqlite3"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/internal/testkit/freshness"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// bound is the freshness bound in these tests: shorter than the default, so that violations are
// more likely in the same running time.
const bound = 300 * time.Millisecond

// TestFreshnessSoak runs the real command with a real file to which another program writes,
// disturbs all of them, and checks every answer against the log of the writes. The writer uses
// plain updates, upserts, REPLACE statements that delete other rows, cascades over two levels, and
// moves; see testdata/writer.py.
func TestFreshnessSoak(t *testing.T) {
	for _, test := range []struct {
		journal string
		replace string // seconds between replacements of the file
		disturb []func(*freshnessRun)
	}{
		// A file in WAL mode must not be replaced while connections are open, because this corrupts
		// the database (sqlite.org/howtocorrupt.html, 2.4 and 2.5).
		{"wal", "0", []func(*freshnessRun){(*freshnessRun).stopGateway, (*freshnessRun).killGateway, (*freshnessRun).killWriter}},
		{"delete", "1.5", []func(*freshnessRun){(*freshnessRun).stopGateway, (*freshnessRun).killWriter, (*freshnessRun).killGateway}},
	} {
		t.Run(test.journal, func(t *testing.T) {
			length := testkit.SoakTime(t, 8*time.Second)
			r := newFreshnessRun(t, test.journal, test.replace)
			r.start()
			for i := 0; time.Since(r.began) < length; i++ {
				time.Sleep(length/6 + 200*time.Millisecond)
				test.disturb[i%len(test.disturb)](r)
			}
			r.finish()
		})
	}
}

// TestFreshnessReloads reloads the configuration continuously, by signal and by request: the
// definition of one resource changes but not its documents, and the settings of the other change.
func TestFreshnessReloads(t *testing.T) {
	r := newFreshnessRun(t, "wal", "0")
	r.start()
	text, err := os.ReadFile(r.config)
	if err != nil {
		t.Fatal(err)
	}
	length := testkit.SoakTime(t, 8*time.Second)
	reloads := 0
	for i := 0; time.Since(r.began) < length || reloads < 20 && time.Since(r.began) < length+2*time.Minute; i++ {
		other := string(text)
		if i%2 == 0 {
			other = strings.Replace(other, "    key: [gid]\n", "    key: [gid]\n    columns: [gid, title]\n", 1)
		}
		if i%3 == 0 {
			other = strings.Replace(other, "    key: [id]\n", "    key: [id]\n    on_stale: unavailable\n", 1)
		}
		blackbox.Write(t, r.config, other)
		if i%4 == 3 {
			r.signal(r.gateway, syscall.SIGHUP)
			time.Sleep(100 * time.Millisecond)
			continue
		}
		status, a := blackbox.AskReload(t, "POST", r.admin)
		// On a busy machine the stream may lag for a moment, or be too late for a reload, which is
		// then refused. Such a reload does not count.
		behind := len(a.Warnings) > 0 && !slices.ContainsFunc(a.Warnings, func(warning string) bool {
			return !strings.Contains(warning, "the invalidation stream is")
		})
		late := status == 503 && strings.Contains(a.Error, "did not include the new resources within")
		if status != 200 && !late || len(a.Warnings) > 0 && !behind {
			t.Fatalf("reload: %d %+v", status, a)
		}
		if !behind && !late {
			reloads++
		}
		if i%10 == 9 {
			r.killWriter()
		}
	}
	r.finish()
	t.Logf("%d reloads by request", reloads)
	if reloads < 20 {
		t.Errorf("%d reloads: nothing was proved", reloads)
	}
}

type freshnessRun struct {
	t       *testing.T
	dir     string
	journal string
	replace string
	began   time.Time
	checker *freshness.Checker
	url     string
	admin   string
	config  string
	log     string
	redis   int // port
	thrift  int // port
	service *idl.Service
	writers int

	gateway *testkit.Process
	writer  *testkit.Process
	readers sync.WaitGroup
	over    atomic.Bool
	answers atomic.Int64 // documents and 404s; one proves several entities
	byRedis atomic.Int64 // of them: over the Redis protocol
	byRPC   atomic.Int64 // of them: over Thrift
}

func newFreshnessRun(t *testing.T, journal, replace string) *freshnessRun {
	if _, err := exec.LookPath("python3"); err != nil {
		t.Fatalf("%v: the foreign writer needs it; run: make prepare", err)
	}
	r := &freshnessRun{
		t: t, dir: t.TempDir(), journal: journal, replace: replace, began: time.Now(),
		checker: freshness.New(freshness.Options{Bound: bound}),
	}
	r.log = filepath.Join(r.dir, "writes.log")
	r.makeDatabase(filepath.Join(r.dir, "app.db"))
	port, admin := testkit.FreePort(t), testkit.FreePort(t)
	r.url, r.redis, r.thrift = fmt.Sprintf("http://127.0.0.1:%d", port), testkit.FreePort(t), testkit.FreePort(t)
	r.admin = fmt.Sprintf("http://127.0.0.1:%d", admin)
	r.config = filepath.Join(r.dir, "slipstream.yaml")
	text := fmt.Sprintf(`
origin: { url: "sqlite:app.db" }
freshness: %v
resources:
  roots:
    table: root
    key: [id]
    children: { kids: { table: kid, on: { root_id: id }, order: [cid] } }
  groups:
    table: grp
    key: [gid]
    children:
      roots:
        table: root
        on: { gid: gid }
        order: [id]
        children: { kids: { table: kid, on: { root_id: id }, order: [cid] } }
frontends: { http: "127.0.0.1:%d", redis: "127.0.0.1:%d", thrift: "127.0.0.1:%d" }
admin: "127.0.0.1:%d"
`, bound, port, r.redis, r.thrift, admin)
	if err := os.WriteFile(r.config, []byte(text), 0o600); err != nil {
		t.Fatal(err)
	}
	if out := blackbox.Run(t, "db", "apply", "-c", r.config); out.Code != 0 {
		t.Fatalf("db apply: exit %d\n%s%s", out.Code, out.Stdout, out.Stderr)
	}
	r.service = numberFields(t, r.config)
	return r
}

// makeDatabase fills the file and reports its initial contents to the checker.
func (r *freshnessRun) makeDatabase(path string) {
	db, err := sqlite3.Open(path)
	if err != nil {
		r.t.Fatal(err)
	}
	defer db.Close()
	first := r.checker.Writer()
	var sql strings.Builder
	sql.WriteString(`PRAGMA journal_mode = ` + r.journal + `; BEGIN;
		CREATE TABLE grp(gid INTEGER PRIMARY KEY, title TEXT);
		CREATE TABLE root(id INTEGER PRIMARY KEY, gid INTEGER REFERENCES grp(gid) ON DELETE CASCADE, version INTEGER, code TEXT UNIQUE);
		CREATE TABLE kid(cid INTEGER PRIMARY KEY, root_id INTEGER NOT NULL REFERENCES root(id) ON DELETE CASCADE, slot INTEGER UNIQUE, version INTEGER);
		CREATE INDEX root_gid ON root(gid); CREATE INDEX kid_root ON kid(root_id);`)
	for _, g := range []int{0, 1, 2, 3, 4, 9} {
		fmt.Fprintf(&sql, "INSERT INTO grp VALUES (%d, 'group %d');", g, g)
	}
	for id := 1; id <= 50; id++ {
		if id == 32 || id == 34 || id == 36 {
			continue // its code may be taken by another row
		}
		group := id % 5
		if id >= 45 && id <= 47 {
			group = 9
		}
		fmt.Fprintf(&sql, "INSERT INTO root VALUES (%d, %d, 1, 'c%d');", id, group, id)
		first.Initial(fmt.Sprint("r", id), 1)
		if id <= 20 || id >= 41 && id <= 47 {
			fmt.Fprintf(&sql, "INSERT INTO kid(root_id, version) VALUES (%d, 1), (%d, 1);", id, id)
			first.Initial(fmt.Sprint("k", id), 1)
		}
		if id >= 48 {
			first.Initial(fmt.Sprintf("m%d@%d", id, group), 1)
		}
	}
	for slot := 1; slot <= 4; slot++ {
		fmt.Fprintf(&sql, "INSERT INTO kid(root_id, slot, version) VALUES (37, %d, 1);", slot)
		first.Initial(fmt.Sprintf("s%d@37", slot), 1)
	}
	sql.WriteString("COMMIT;")
	if err := db.Exec(sql.String()); err != nil {
		r.t.Fatal(err)
	}
}

func (r *freshnessRun) start() {
	r.startGateway()
	r.startWriter()
	for i := range 14 {
		reader := r.checker.Reader()
		random := testkit.Fork(uint64(i), 7)
		var from documents = newOverHTTP(r.url)
		switch {
		case i >= 11:
			from = newOverThrift(r.t, r.thrift, r.service, rpc.ClientConfig{Transport: []rpc.Transport{rpc.TTHeader, rpc.Framed, rpc.Buffered}[i-11], Compact: i == 12})
		case i >= 8:
			from = newOverRedis(r.t, r.redis, 2+i%2)
		}
		r.readers.Go(func() {
			defer from.close()
			for !r.over.Load() {
				switch random.IntN(8) {
				case 0, 1:
					r.readGroup(from, reader, []int{0, 1, 2, 3, 4, 9}[random.IntN(6)])
				case 2:
					ids := make([]int, 1+random.IntN(12))
					for i := range ids {
						ids[i] = 1 + random.IntN(50)
					}
					r.readRoots(from, reader, ids)
				default:
					r.readRoot(from, reader, 1+random.IntN(50))
				}
				if random.IntN(50) == 0 { // leave documents in the cache for a while
					time.Sleep(between(random, 20*time.Millisecond))
				}
			}
		})
	}
}

func (r *freshnessRun) startGateway() {
	r.gateway = testkit.Start(r.t, testkit.Command{
		Path: blackbox.Program(), Args: []string{"serve", "-c", r.config},
		Ready: func(ctx context.Context) error {
			status, _, _, err := blackbox.Get(ctx, r.url+"/roots/1")
			if err == nil && status != 200 {
				err = fmt.Errorf("status %d", status)
			}
			return err
		},
	})
}

func (r *freshnessRun) startWriter() {
	r.writers++
	r.writer = testkit.Start(r.t, testkit.Command{
		Path: "python3", Args: []string{"testdata/writer.py", filepath.Join(r.dir, "app.db"), r.journal, r.log,
			fmt.Sprint(testkit.Seed(r.t) % 1_000_000), r.replace},
	})
}

// stopGateway freezes the process for longer than the bound: when it continues, its knowledge is
// out of date and requests wait in its sockets.
func (r *freshnessRun) stopGateway() {
	r.signal(r.gateway, syscall.SIGSTOP)
	time.Sleep(3 * bound)
	r.signal(r.gateway, syscall.SIGCONT)
}

func (r *freshnessRun) killGateway() {
	r.gateway.Kill()
	time.Sleep(bound)
	r.startGateway()
}

// killWriter kills the writer in the middle of an operation, in rollback mode sometimes with a hot
// journal, and starts another one.
func (r *freshnessRun) killWriter() {
	r.writer.Kill()
	r.startWriter()
}

func (r *freshnessRun) signal(p *testkit.Process, s os.Signal) {
	if err := p.Signal(s); err != nil {
		r.t.Errorf("signal %v: %v", s, err)
	}
}

type rootDocument struct {
	ID      int
	Version uint64
	Kids    []struct {
		Slot    int
		Version uint64
	}
}

// ask makes a request, decodes the body of a 200, and returns the status.
func (r *freshnessRun) ask(from documents, path string, into any) (status int) {
	status, body, _ := from.ask(path)
	if status == 200 {
		if err := json.Unmarshal(body, into); err != nil {
			r.t.Errorf("%s: %v in %s", path, err, body)
			return 0
		}
	}
	if status == 200 || status == 404 {
		r.answers.Add(1)
		switch from.(type) {
		case overRedis:
			r.byRedis.Add(1)
		case overThrift:
			r.byRPC.Add(1)
		}
	}
	return status
}

func (r *freshnessRun) readRoot(from documents, log *freshness.Reader, id int) {
	var root rootDocument
	start := freshness.Now()
	switch status := r.ask(from, fmt.Sprintf("/roots/%d", id), &root); status {
	case 200:
		r.answered(log, start, id, &root)
	case 404:
		r.answered(log, start, id, nil)
	default:
		log.Failed(fmt.Sprint("r", id), start)
	}
}

// readRoots reads many roots in one request, half of the time in gzip, which Go's client requests
// and decodes automatically.
func (r *freshnessRun) readRoots(from documents, log *freshness.Reader, ids []int) {
	keys := make([]string, len(ids))
	for i, id := range ids {
		keys[i] = fmt.Sprint("key=", id)
	}
	var roots []*rootDocument
	start := freshness.Now()
	if r.ask(from, "/roots?"+strings.Join(keys, "&"), &roots) != 200 {
		for _, id := range ids {
			log.Failed(fmt.Sprint("r", id), start)
		}
		return
	}
	if len(roots) != len(ids) {
		r.t.Errorf("%d documents for %d keys", len(roots), len(ids))
		return
	}
	for i, id := range ids {
		r.answered(log, start, id, roots[i])
	}
}

// answered logs the answer about one root, or nil if it is missing.
func (r *freshnessRun) answered(log *freshness.Reader, start int64, id int, root *rootDocument) {
	switch {
	case root == nil:
		log.Missing(fmt.Sprint("r", id), start)
		if id >= 41 && id <= 47 {
			log.Missing(fmt.Sprint("k", id), start)
		}
	case root.ID != id:
		r.t.Errorf("root %d was answered for %d", root.ID, id)
	default:
		r.sawRoot(log, start, root)
	}
}

// sawRoot logs the entities of a root that was found, separately or in its group.
func (r *freshnessRun) sawRoot(log *freshness.Reader, start int64, root *rootDocument) {
	var versions []uint64
	slots := make(map[int]uint64)
	for _, kid := range root.Kids {
		if kid.Slot != 0 {
			slots[kid.Slot] = kid.Version
		} else {
			versions = append(versions, kid.Version)
		}
	}
	id := root.ID
	switch {
	case id <= 10 || id >= 41 && id <= 47: // root and kids change in one transaction
		log.Found(fmt.Sprint("r", id), start, root.Version, versions...)
		log.Found(fmt.Sprint("k", id), start, root.Version, versions...)
		if len(versions) == 0 {
			r.t.Errorf("root %d without its kids: a torn document", id)
		}
	case id <= 20:
		if len(versions) != 2 {
			r.t.Errorf("root %d has %d kids, want 2", id, len(versions))
			return
		}
		log.Found(fmt.Sprint("k", id), start, versions[0], versions...)
	case id <= 36:
		log.Found(fmt.Sprint("r", id), start, root.Version)
	case id <= 40:
		for slot := 1; slot <= 4; slot++ {
			key := fmt.Sprintf("s%d@%d", slot, id)
			if version := slots[slot]; version != 0 {
				log.Found(key, start, version)
			} else {
				log.Missing(key, start)
			}
		}
	}
}

func (r *freshnessRun) readGroup(from documents, log *freshness.Reader, gid int) {
	var group struct {
		GID   int
		Roots []rootDocument
	}
	start := freshness.Now()
	status := r.ask(from, fmt.Sprintf("/groups/%d", gid), &group)
	if status != 200 && status != 404 || status == 404 && gid != 9 {
		log.Failed(fmt.Sprintf("m48@%d", gid), start)
		return
	}
	found := make(map[int]bool)
	for i := range group.Roots {
		root := &group.Roots[i]
		found[root.ID] = true
		r.sawRoot(log, start, root)
		if root.ID >= 48 {
			log.Found(fmt.Sprintf("m%d@%d", root.ID, gid), start, root.Version)
		}
	}
	for id := 1; id <= 50; id++ {
		switch {
		case found[id]:
		case id >= 48 && gid != 9:
			log.Missing(fmt.Sprintf("m%d@%d", id, gid), start)
		case gid == 9 && id >= 45 && id <= 47, gid != 9 && id >= 41 && id <= 44 && id%5 == gid:
			log.Missing(fmt.Sprint("r", id), start)
		}
	}
}

// A run with fewer than these numbers proves nothing.
const (
	minAnswers      = 8_000
	minRedisAnswers = 1_000
	minWrites       = 500
)

// awaitEnough waits until the run has seen enough to prove something. An otherwise idle machine
// gives 60,000 answers in an ordinary run; a slow or busy one needs longer.
func (r *freshnessRun) awaitEnough() {
	testkit.Eventually(r.t, 2*time.Minute, func() error {
		log, err := os.ReadFile(r.log)
		if err != nil {
			return err
		}
		answers, byRedis, byRPC, writes := r.answers.Load(), r.byRedis.Load(), r.byRPC.Load(), bytes.Count(log, []byte("\nack "))
		if answers < minAnswers || byRedis < minRedisAnswers || byRPC < minRedisAnswers || writes < minWrites {
			return fmt.Errorf("%d answers, %d of them over the Redis protocol and %d over Thrift, %d writes: too few to prove anything", answers, byRedis, byRPC, writes)
		}
		return nil
	})
}

func (r *freshnessRun) finish() {
	r.awaitEnough()
	r.over.Store(true)
	r.readers.Wait()
	r.writer.Kill()
	log, err := os.Open(r.log)
	if err != nil {
		r.t.Fatal(err)
	}
	defer log.Close()
	if err := r.checker.Writer().ReadLog(log); err != nil {
		r.t.Fatal(err)
	}
	report, err := r.checker.Check()
	if err != nil {
		r.t.Fatal(err)
	}
	r.t.Logf("%d answers, %d of them over the Redis protocol and %d over Thrift; %v; %d writers; journal %s", r.answers.Load(), r.byRedis.Load(), r.byRPC.Load(), report, r.writers, r.journal)
	if err := report.Err(); err != nil {
		r.t.Error(err)
	}
	if report.Writes < minWrites {
		r.t.Errorf("only %d writes: nothing was proved", report.Writes)
	}
	if report.Outdated == 0 {
		r.t.Error("no answer was outdated even for a moment: nothing came from the cache")
	}
}
