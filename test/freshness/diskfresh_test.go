//go:build unix

package freshness

import (
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
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
)

// useDisk configures a disk tier that is really used, because memory holds none of its documents.
func (r *freshnessRun) useDisk() {
	text, err := os.ReadFile(r.config)
	if err != nil {
		r.t.Fatal(err)
	}
	blackbox.Write(r.t, r.config, string(text)+diskTiers)
}

const diskTiers = "\ntiers: { memory: 1MiB, disk: { path: tier, size: 64MiB, promote: false } }\n"

// endGateway shuts the process down gracefully and starts another one.
func (r *freshnessRun) endGateway() {
	r.signal(r.gateway, syscall.SIGTERM)
	if code := blackbox.ExitCode(r.t, r.gateway, 20*time.Second); code != blackbox.ExitOK {
		r.t.Errorf("exit code %d after SIGTERM\n%s", code, r.gateway.Log())
	}
	r.startGateway()
}

// TestFreshnessDiskSoak is TestFreshnessSoak with a disk tier, and with many restarts: documents
// kept across them are right.
func TestFreshnessDiskSoak(t *testing.T) {
	for _, journal := range []string{"wal", "delete"} {
		t.Run(journal, func(t *testing.T) {
			length := testkit.SoakTime(t, 8*time.Second)
			replace := "0"
			if journal == "delete" {
				replace = "2.5" // the file is replaced, even while the gateway is down
			}
			r := newFreshnessRun(t, journal, replace)
			r.useDisk()
			r.start()
			disturb := []func(*freshnessRun){
				(*freshnessRun).killGateway, (*freshnessRun).endGateway, (*freshnessRun).stopGateway, (*freshnessRun).killGateway, (*freshnessRun).killWriter,
			}
			for i := 0; time.Since(r.began) < length; i++ {
				time.Sleep(min(length/6, 1500*time.Millisecond))
				disturb[i%len(disturb)](r)
			}
			r.finish()
		})
	}
}

// shelf is a gateway over many documents with a disk tier, one writer, and readers whose
// answers are checked.
//
// Its drain has a grace period: without one, a new connection could be closed while its first
// request is in transit, which a client must not retry automatically.
type shelf struct {
	t       *testing.T
	dir     string
	file    string
	http    string
	admin   string
	checker *freshness.Checker
	gateway *testkit.Process

	stop            chan struct{}
	clients         sync.WaitGroup
	hits, fromDisk  atomic.Int64
	answers, failed atomic.Int64
	needless        atomic.Int64 // loads of documents that had not changed since they were read, while freshness was promised
	changed         [shelfDocuments + 1]atomic.Bool
}

const shelfDocuments = 2000

func newShelf(t *testing.T) *shelf {
	s := &shelf{t: t, dir: t.TempDir(), stop: make(chan struct{}), checker: freshness.New(freshness.Options{Bound: bound})}
	db, err := sqlite3.Open(filepath.Join(s.dir, "app.db"))
	if err != nil {
		t.Fatal(err)
	}
	defer db.Close()
	if err := db.Exec(fmt.Sprintf(`PRAGMA journal_mode = WAL; CREATE TABLE item (id INTEGER PRIMARY KEY, version INTEGER, text TEXT);
		WITH RECURSIVE n (i) AS (SELECT 1 UNION ALL SELECT i + 1 FROM n WHERE i < %d) INSERT INTO item SELECT i, 1, printf('%%.300c', 'x') FROM n`, shelfDocuments)); err != nil {
		t.Fatal(err)
	}
	first := s.checker.Writer()
	for id := 1; id <= shelfDocuments; id++ {
		first.Initial(fmt.Sprint(id), 1)
	}
	port, admin := testkit.FreePort(t), testkit.FreePort(t)
	s.http, s.admin = fmt.Sprintf("http://127.0.0.1:%d", port), fmt.Sprintf("http://127.0.0.1:%d", admin)
	s.file = filepath.Join(s.dir, "slipstream.yaml")
	blackbox.Write(t, s.file, fmt.Sprintf(`
origin: { url: "sqlite:app.db" }
freshness: %v
resources: { items: { table: item, key: [id] } }
frontends: { http: "127.0.0.1:%d" }
admin: "127.0.0.1:%d"
handover: handover.sock
drain: { grace: 500ms }
tiers: { memory: 64MiB, disk: { path: tier, size: 64MiB } }
`, bound, port, admin))
	blackbox.Expect(t, blackbox.ExitOK, "statements were run", "", "db", "apply", "-c", s.file)
	return s
}

// write changes one document after another until the end, 50 per second.
func (s *shelf) write() {
	log, random := s.checker.Writer(), testkit.Fork(testkit.Seed(s.t), 1)
	versions := make(map[int]uint64)
	s.clients.Go(func() {
		db, err := sqlite3.Open(filepath.Join(s.dir, "app.db"))
		if err != nil {
			s.t.Error(err)
			return
		}
		defer db.Close()
		if err := db.BusyTimeout(10 * time.Second); err != nil {
			s.t.Error(err)
		}
		for {
			select {
			case <-s.stop:
				return
			case <-time.After(20 * time.Millisecond):
			}
			id := 1 + random.IntN(shelfDocuments)
			versions[id]++
			version := 1 + versions[id]
			attempt := log.Begin(fmt.Sprint(id), version)
			s.changed[id].Store(true)
			if err := db.Exec(fmt.Sprintf("UPDATE item SET version = %d WHERE id = %d", version, id)); err != nil {
				s.t.Error(err)
				return
			}
			attempt.Acked()
			s.changed[id].Store(true) // even if it was loaded in the meantime
		}
	})
}

// read starts n readers of random documents. Answers that fail are counted.
func (s *shelf) read(n int, pause time.Duration) {
	for i := range n {
		log, random := s.checker.Reader(), testkit.Fork(uint64(i), 2)
		client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
		s.clients.Go(func() {
			defer client.CloseIdleConnections()
			for {
				select {
				case <-s.stop:
					return
				case <-time.After(pause):
				}
				s.ask(client, log, 1+random.IntN(shelfDocuments))
			}
		})
	}
}

// ask gets one document.
func (s *shelf) ask(client *http.Client, log *freshness.Reader, id int) {
	start, key := freshness.Now(), fmt.Sprint(id)
	answer, err := client.Get(fmt.Sprintf("%s/items/%d", s.http, id))
	if err != nil {
		log.Failed(key, start)
		s.failed.Add(1)
		s.t.Logf("%s: %v", key, err)
		return
	}
	defer answer.Body.Close()
	body, err := io.ReadAll(answer.Body)
	var item struct {
		ID      int
		Version uint64
	}
	if err != nil || answer.StatusCode != 200 {
		log.Failed(key, start)
		s.failed.Add(1)
		s.t.Logf("%s: status %d, %v", key, answer.StatusCode, err)
		return
	}
	if err := json.Unmarshal(body, &item); err != nil || item.ID != id {
		s.t.Errorf("document %d: %v, %.100s", id, err, body)
		return
	}
	log.Found(key, start, item.Version)
	s.answers.Add(1)
	if status := answer.Header.Get("Cache-Status"); strings.Contains(status, "; hit") {
		s.hits.Add(1)
		if strings.Contains(status, "detail=disk") {
			s.fromDisk.Add(1)
		}
	} else if strings.Contains(status, "; stored") && !s.changed[id].Swap(false) {
		s.needless.Add(1)
	}
}

// warm requests every document once, and waits until all are in the file.
func (s *shelf) warm() {
	client := &http.Client{Timeout: 20 * time.Second, Transport: &http.Transport{MaxIdleConnsPerHost: 1}}
	defer client.CloseIdleConnections()
	log := s.checker.Reader()
	for id := 1; id <= shelfDocuments; id++ {
		s.ask(client, log, id)
	}
	testkit.Eventually(s.t, time.Minute, func() error {
		_, _, page, err := blackbox.Get(s.t.Context(), s.admin+"/metrics")
		if err == nil && (!strings.Contains(page, "\nslipstream_disk_queued_documents 0\n") || strings.Contains(page, "\nslipstream_disk_written_documents_total 0\n")) {
			err = errors.New("documents wait to be written")
		}
		return err
	})
}

func (s *shelf) awaitReady() {
	testkit.Eventually(s.t, 30*time.Second, func() error {
		status, _, body, err := blackbox.Get(s.t.Context(), s.admin+"/ready")
		if err == nil && status != 200 {
			err = fmt.Errorf("/ready: %d %s", status, body)
		}
		return err
	})
}

// end stops everything and checks the results.
func (s *shelf) end() {
	close(s.stop)
	s.clients.Wait()
	report, err := s.checker.Check()
	if err != nil {
		s.t.Fatal(err)
	}
	s.t.Logf("%v", report)
	if err := report.Err(); err != nil {
		s.t.Error(err)
	}
}

// TestDiskRestartsUnderWrites: immediately after a restart, however the process ended, nearly all
// answers are hits, and none is stale.
func TestDiskRestartsUnderWrites(t *testing.T) {
	s := newShelf(t)
	s.gateway = blackbox.Serving(t, s.file)
	s.awaitReady()
	s.write()
	s.warm()
	s.read(4, 2*time.Millisecond)
	for i, how := range []string{"SIGKILL", "SIGTERM", "SIGKILL", "SIGTERM"} {
		began := time.Now()
		if how == "SIGTERM" {
			if err := s.gateway.Signal(syscall.SIGTERM); err != nil {
				t.Fatal(err)
			}
			if code := blackbox.ExitCode(t, s.gateway, 20*time.Second); code != blackbox.ExitOK {
				t.Errorf("exit code %d\n%s", code, s.gateway.Log())
			}
		} else {
			s.gateway.Kill()
		}
		down := time.Since(began)
		time.Sleep(2 * bound) // writes from now on are visible after the restart
		s.gateway = blackbox.Serving(t, s.file)
		s.awaitReady()
		hits, disk, answers, needless := s.hits.Load(), s.fromDisk.Load(), s.answers.Load(), s.needless.Load()
		ready := time.Now()
		testkit.Eventually(t, time.Minute, func() error { // warming up has put most into memory
			if all, some := s.answers.Load()-answers, s.fromDisk.Load()-disk; all < 1000 || some < 50 {
				return fmt.Errorf("restart %d by %s: %d answers, %d of them from disk", i, how, all, some)
			}
			return nil
		})
		hits, disk, answers = s.hits.Load()-hits, s.fromDisk.Load()-disk, s.answers.Load()-answers
		ratio := float64(hits) / float64(answers)
		needless = s.needless.Load() - needless
		t.Logf("%s, which took %v: of %d answers in %v after it was ready %.1f %% were hits, %d of them from disk; %d loads were needless",
			how, down.Round(time.Millisecond), answers, time.Since(ready).Round(time.Millisecond), 100*ratio, disk, needless)
		// The slower the machine, the more documents have changed since they were last read, and
		// the more often freshness is not promised, so that documents are loaded without being
		// stored. All others are hits.
		if ratio < 0.9 && float64(needless) > 0.05*float64(answers) {
			t.Errorf("restart %d by %s: %.1f %% hits of %d, %d from disk; %d were loaded although they had not changed", i, how, 100*ratio, answers, disk, needless)
		}
	}
	s.end()
	if err := s.gateway.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := blackbox.ExitCode(t, s.gateway, 10*time.Second); code != blackbox.ExitOK {
		t.Errorf("exit code %d\n%s", code, s.gateway.Log())
	}
}

// TestDiskHandOvers: a successor starts without the disk tier and opens it when the previous
// process releases it. No request fails, no answer is stale, and documents come from disk again. If
// any other process holds the file, the error names it.
func TestDiskHandOvers(t *testing.T) {
	s := newShelf(t)
	s.gateway = blackbox.Serving(t, s.file)
	s.awaitReady()
	s.write()
	s.warm()
	s.read(4, 2*time.Millisecond)
	times := 5
	if blackbox.Race {
		times = 2
	}
	for range times {
		old := s.gateway
		s.gateway = blackbox.Serving(t, s.file)
		if code := blackbox.ExitCode(t, old, 20*time.Second); code != blackbox.ExitOK {
			t.Errorf("exit code %d of the previous process\n%s", code, old.Log())
		}
		testkit.Eventually(t, 20*time.Second, func() error {
			if !strings.Contains(s.gateway.Log(), "the disk tier is open") {
				return fmt.Errorf("the disk tier is not open:\n%s", s.gateway.Log())
			}
			return nil
		})
		if !strings.Contains(s.gateway.Log(), "still held by the previous process") {
			t.Logf("the previous process was quick: the tier was free immediately\n%s", s.gateway.Log())
		}
		before := s.fromDisk.Load()
		testkit.Eventually(t, 20*time.Second, func() error {
			if n := s.fromDisk.Load() - before; n < 50 {
				return fmt.Errorf("%d answers from disk, expected 50", n)
			}
			return nil
		})
	}
	text, err := os.ReadFile(s.file)
	if err != nil {
		t.Fatal(err)
	}
	beside := filepath.Join(s.dir, "beside.yaml")
	other := strings.Replace(string(text), "handover: handover.sock", "", 1)
	for _, address := range []string{s.http, s.admin} {
		other = strings.Replace(other, strings.TrimPrefix(address, "http://"), fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t)), 1)
	}
	blackbox.Write(t, beside, other)
	blackbox.Expect(t, blackbox.ExitFailure, "", fmt.Sprintf("is open in process %d;", s.gateway.PID()), "serve", "-c", beside)
	s.end()
	t.Logf("%d handovers, %d answers, %d from disk, %d failed", times, s.answers.Load(), s.fromDisk.Load(), s.failed.Load())
	if n := s.failed.Load(); n > 0 {
		t.Errorf("%d requests failed", n)
	}
}
