//go:build unix

package freshness

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"math/rand/v2"
	"net/http"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/jackc/pgx/v5"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/internal/testkit/freshness"
)

// pgReloadSchema contains tables that are written continuously, and calm, which is never written.
const pgReloadSchema = `
CREATE TABLE calm (id int PRIMARY KEY, v bigint NOT NULL);
CREATE TABLE box (id int PRIMARY KEY, v bigint NOT NULL, label text NOT NULL DEFAULT 'x');
CREATE TABLE item (id int PRIMARY KEY, v bigint NOT NULL, box_id int REFERENCES box);
CREATE TABLE note (id int PRIMARY KEY, v bigint NOT NULL, box_id int REFERENCES box);
CREATE TABLE tag (id int PRIMARY KEY, v bigint NOT NULL);
CREATE INDEX ON item (box_id);
CREATE INDEX ON note (box_id);
INSERT INTO calm SELECT i, 1 FROM generate_series(1, 20) AS i;
INSERT INTO box SELECT i, 1 FROM generate_series(1, 20) AS i;
INSERT INTO item SELECT i, 1, i FROM generate_series(1, 20) AS i;
INSERT INTO note SELECT i, 1, i FROM generate_series(1, 20) AS i;
INSERT INTO tag SELECT i, 1 FROM generate_series(1, 20) AS i;
`

const pgReloadRows = 20 // of each table

// pgReloadPhase is one configuration.
type pgReloadPhase struct {
	name  string
	tags  bool   // whether there is a resource with this name
	boxes string // the definition of the other one
	shows string // the members of its documents
	apply bool   // whether it needs triggers that do not exist yet
}

// pgReloads are applied in order; after the last one follows the first.
var pgReloads = []pgReloadPhase{
	{name: "the first", boxes: "columns: [id, v], children: { items: { table: item, order: [id] } }", shows: "id v items"},
	{name: "a resource more", tags: true, boxes: "columns: [id, v], children: { items: { table: item, order: [id] } }", shows: "id v items"},
	{name: "another definition", tags: true, boxes: "children: { items: { table: item, order: [id] } }", shows: "id v label items"},
	{name: "a resource less", boxes: "children: { items: { table: item, order: [id] } }", shows: "id v label items"},
	{name: "a definition that needs triggers", boxes: "children: { items: { table: item, order: [id] }, notes: { table: note } }", shows: "id v label items notes", apply: true},
}

// pgReload is a gateway over PostgreSQL that is used and reloaded while its tables change.
type pgReload struct {
	t           *testing.T
	pg          *testkit.Postgres
	file        string
	http, admin string
	gateway     *testkit.Process
	checker     *freshness.Checker

	clients sync.WaitGroup // writers and readers; the test waits

	// Atomics: the test writes phase and over, the clients read them; those write the others.
	phase            atomic.Pointer[pgReloadPhase] // to which every answer must belong; nil while it is not certain
	over             atomic.Bool
	calm, calmHits   atomic.Int64
	hits, tags, seen atomic.Int64 // hits of boxes; answers of tags; answers with a certain phase
}

// TestPostgresReloadsUnderLoad: resources of a PostgreSQL origin are added, changed and removed by
// signal while their rows change. No answer is stale or from another configuration, and unchanged
// resources remain cached.
func TestPostgresReloadsUnderLoad(t *testing.T) {
	r := newPGReload(t)
	for i := range uint64(2) {
		r.startWriter(i)
	}
	for i := range uint64(3) {
		r.startReader(i)
	}
	for round := range 2 {
		for i := range pgReloads {
			if round > 0 || i > 0 {
				r.reload(&pgReloads[i])
			}
			r.phase.Store(&pgReloads[i])
			time.Sleep(bound + 200*time.Millisecond) // by then, missed changes would appear as stale documents
			r.phase.Store(nil)
		}
	}
	r.phase.Store(&pgReloads[len(pgReloads)-1]) // it remains in effect
	testkit.Eventually(t, 2*time.Minute, func() error {
		if r.calm.Load() < 100 || r.hits.Load() < 100 || r.tags.Load() < 100 || r.seen.Load() < 100 {
			return fmt.Errorf("%d answers of the unchanged resource, %d hits of the changed one, %d answers of the one that is added and removed, %d checked: too few to prove anything",
				r.calm.Load(), r.hits.Load(), r.tags.Load(), r.seen.Load())
		}
		return nil
	})
	r.over.Store(true)
	r.clients.Wait()
	report, err := r.checker.Check()
	if err != nil {
		t.Fatal(err)
	}
	t.Logf("%v; %d answers of the unchanged resource, %d hits of the changed one, %d answers of the one that is added and removed", report, r.calm.Load(), r.hits.Load(), r.tags.Load())
	if err := report.Err(); err != nil {
		t.Error(err)
	}
	if n := r.calm.Load(); r.calmHits.Load() < n {
		t.Errorf("%d of %d answers of the unchanged resource were hits", r.calmHits.Load(), n)
	}
	for _, wrong := range []string{"history broke", "cannot be promised", "configuration was refused"} {
		if log := r.gateway.Log(); strings.Contains(log, wrong) {
			t.Errorf("the log contains %q:\n%s", wrong, log)
		}
	}
}

func newPGReload(t *testing.T) *pgReload {
	r := &pgReload{t: t, pg: testkit.StartPostgres(t), checker: freshness.New(freshness.Options{Bound: bound})}
	r.pg.PSQL(t, pgReloadSchema)
	r.http, r.admin = fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t)), fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	r.file = blackbox.WriteFile(t, "slipstream.yaml", "")
	r.write(&pgReloads[1]) // the triggers of tags must exist when it is added
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", r.file)
	r.write(&pgReloads[0])
	r.gateway = testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", r.file}, Ready: blackbox.Ready("http://" + r.admin)})
	first := r.checker.Writer()
	for _, table := range []string{"box", "item", "note", "tag"} {
		for id := range pgReloadRows {
			first.Initial(fmt.Sprint(table, id+1), 1)
		}
	}
	for id := range pgReloadRows { // the unchanged resource is cached from now on
		testkit.Eventually(t, 10*time.Second, func() error {
			_, head, _, err := blackbox.Get(t.Context(), fmt.Sprintf("http://%s/calm/%d", r.http, id+1))
			if err == nil && head.Get("Cache-Status") != "slipstream; hit" {
				err = fmt.Errorf("calm %d: %v", id+1, head)
			}
			return err
		})
	}
	return r
}

// write writes the configuration of a phase. The horizon of calm may be old, so its hits do not
// depend on how busy the machine is.
func (r *pgReload) write(p *pgReloadPhase) {
	r.t.Helper()
	tags := ""
	if p.tags {
		tags = "  tags: { table: tag, key: [id] }\n"
	}
	blackbox.Write(r.t, r.file, fmt.Sprintf("origin: { url: %q }\nfreshness: %v\nfrontends: { http: %q }\nadmin: %q\nresources:\n%s  calm: { table: calm, key: [id], freshness: 20s }\n  boxes: { table: box, key: [id], %s }\n",
		r.pg.URL, bound, r.http, r.admin, tags, p.boxes))
}

// reload loads the configuration of a phase and waits until answers belong to it.
func (r *pgReload) reload(p *pgReloadPhase) {
	r.t.Helper()
	r.write(p)
	if p.apply {
		blackbox.Expect(r.t, blackbox.ExitOK, "", "", "db", "apply", "-c", r.file)
	}
	signaled := time.Time{}
	testkit.Eventually(r.t, 10*time.Second, func() error {
		if time.Since(signaled) > 5*time.Second { // a reload is refused if the database does not answer in time
			signaled = time.Now()
			if err := r.gateway.Signal(syscall.SIGHUP); err != nil {
				r.t.Fatal(err)
			}
		}
		status, _, _, err := blackbox.Get(r.t.Context(), "http://"+r.http+"/tags/1")
		if err != nil || (status == 200) != p.tags {
			return fmt.Errorf("%s: /tags/1 is %d, %v", p.name, status, err)
		}
		_, _, body, err := blackbox.Get(r.t.Context(), "http://"+r.http+"/boxes/1")
		if err == nil {
			err = p.judgeBox(body)
		}
		return err
	})
}

// judgeBox checks whether a document belongs to the phase.
func (p *pgReloadPhase) judgeBox(body string) error {
	var members map[string]json.RawMessage
	if err := json.Unmarshal([]byte(body), &members); err != nil {
		return err
	}
	want := strings.Fields(p.shows)
	for _, name := range want {
		if _, there := members[name]; !there || len(members) != len(want) {
			return fmt.Errorf("%s: %s; want the members %q", p.name, body, want)
		}
	}
	return nil
}

// startWriter starts a client that updates its share of the rows, one after another.
func (r *pgReload) startWriter(n uint64) {
	conn, err := pgx.Connect(r.t.Context(), r.pg.URL)
	if err != nil {
		r.t.Fatal(err)
	}
	log, random := r.checker.Writer(), testkit.Fork(n, 1)
	versions := make(map[string]uint64)
	r.clients.Go(func() {
		defer conn.Close(context.Background())
		for !r.over.Load() {
			table, id := []string{"box", "item", "note", "tag"}[random.IntN(4)], 1+2*random.IntN(pgReloadRows/2)+int(n)
			key := fmt.Sprint(table, id)
			version := max(versions[key], 1) + 1
			versions[key] = version
			attempt := log.Begin(key, version)
			if _, err := conn.Exec(r.t.Context(), "UPDATE "+table+" SET v = $1 WHERE id = $2", int64(version), id); err != nil {
				r.t.Errorf("%s: %v", key, err)
				return
			}
			attempt.Acked()
			time.Sleep(time.Duration(random.Int64N(int64(6 * time.Millisecond))))
		}
	})
}

// startReader starts a client that requests documents and logs their contents.
func (r *pgReload) startReader(n uint64) {
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: 10 * time.Second}
	log, random := r.checker.Reader(), testkit.Fork(n, 2)
	r.clients.Go(func() {
		defer client.CloseIdleConnections()
		for !r.over.Load() {
			if err := r.read(client, log, random); err != nil {
				r.t.Error(err)
				return
			}
			time.Sleep(time.Duration(random.Int64N(int64(2 * time.Millisecond))))
		}
	})
}

// read requests one document.
func (r *pgReload) read(client *http.Client, log *freshness.Reader, random *rand.Rand) error {
	resource, id := []string{"calm", "boxes", "tags"}[random.IntN(3)], 1+random.IntN(pgReloadRows)
	path := fmt.Sprintf("/%s/%d", resource, id)
	before, start := r.phase.Load(), freshness.Now()
	rsp, err := client.Get("http://" + r.http + path)
	if err != nil {
		return err
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	if err != nil {
		return err
	}
	phase := r.phase.Load()
	if phase != before {
		phase = nil // the answer may belong to either phase
	}
	if phase != nil {
		r.seen.Add(1)
	}
	hit := rsp.Header.Get("Cache-Status") == "slipstream; hit"
	if resource == "tags" && rsp.StatusCode == 404 && (phase == nil || !phase.tags) {
		return nil
	}
	if rsp.StatusCode != 200 || resource == "tags" && phase != nil && !phase.tags {
		return fmt.Errorf("%s: %d %s", path, rsp.StatusCode, body)
	}
	if resource == "calm" {
		r.calm.Add(1)
		if hit {
			r.calmHits.Add(1)
		}
		return nil
	}
	var doc struct {
		V     uint64
		Items []struct{ ID, V uint64 }
		Notes []struct{ ID, V uint64 }
	}
	if err := json.Unmarshal(body, &doc); err != nil {
		return fmt.Errorf("%s: %s: %w", path, body, err)
	}
	if resource == "tags" {
		r.tags.Add(1)
		log.Found(fmt.Sprint("tag", id), start, doc.V)
		return nil
	}
	if hit {
		r.hits.Add(1)
	}
	log.Found(fmt.Sprint("box", id), start, doc.V)
	for _, item := range doc.Items {
		log.Found(fmt.Sprint("item", item.ID), start, item.V)
	}
	for _, note := range doc.Notes {
		log.Found(fmt.Sprint("note", note.ID), start, note.V)
	}
	if phase != nil {
		return phase.judgeBox(string(body))
	}
	return nil
}
