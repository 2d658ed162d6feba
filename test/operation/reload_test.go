//go:build unix

package operation

import (
	"fmt"
	"io"
	"net/http"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/gateway/demo"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// reloadable is a gateway over the demo's database, together with its configuration file.
type reloadable struct {
	t           *testing.T
	file        string
	text        string // the contents of the file at the start
	http, admin string
	process     *testkit.Process
}

func newReloadable(t *testing.T) *reloadable {
	r := &reloadable{t: t}
	r.file, r.http, r.admin = blackbox.DemoConfig(t)
	if err := demo.Create(filepath.Join(filepath.Dir(r.file), blackbox.DemoFile), 1); err != nil {
		t.Fatal(err)
	}
	text, err := os.ReadFile(r.file)
	if err != nil {
		t.Fatal(err)
	}
	r.text = string(text)
	blackbox.Expect(t, blackbox.ExitOK, "", "", "db", "apply", "-c", r.file)
	r.process = testkit.Start(t, testkit.Command{Path: blackbox.Program(), Args: []string{"serve", "-c", r.file}, Ready: blackbox.Ready(r.admin)})
	return r
}

// write replaces parts of the original file, given as pairs of old and new text, and appends lines.
func (r *reloadable) write(more string, pairs ...string) {
	text := strings.NewReplacer(pairs...).Replace(r.text)
	if len(pairs) > 0 && text == r.text {
		r.t.Fatalf("%q is not in the file", pairs)
	}
	blackbox.Write(r.t, r.file, text+more)
}

func (r *reloadable) awaitLog(text string) {
	r.t.Helper()
	testkit.Eventually(r.t, 10*time.Second, func() error {
		if !strings.Contains(r.process.Log(), text) {
			return fmt.Errorf("the log does not contain %q", text)
		}
		return nil
	})
}

// The changes of a reload can be shown in advance. A file with errors is refused with their
// location, and nothing changes.
func TestReloadFile(t *testing.T) {
	r := newReloadable(t)
	blackbox.Expect(t, blackbox.ExitOK, "no difference", "", "config", "check", "-c", r.file, "--against", r.admin)
	blackbox.Expect(t, blackbox.ExitFailure, "", "is not the admin listener", "config", "check", "-c", r.file, "--against", r.http)

	r.write("", "order: [line_id]", "order: [line_id")
	if status, a := blackbox.AskReload(t, "POST", r.admin); status != 422 || a.Reloaded || len(a.Mistakes) == 0 || a.Mistakes[0].Line == 0 || a.Mistakes[0].Column == 0 {
		t.Errorf("a file that is not YAML: %d %+v", status, a)
	}
	if err := r.process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.awaitLog("the new configuration was refused; the previous one stays in use")

	r.write("", "table: dept\n", "table: depp\n")
	if status, a := blackbox.AskReload(t, "POST", r.admin); status != 422 || len(a.Mistakes) != 1 || a.Mistakes[0].Line == 0 || !strings.Contains(a.Error, "dept") {
		t.Errorf("a table that does not exist: %d %+v", status, a)
	}

	r.write("http: { batch: 7 }\n", "memory: 64MiB", "memory: 65MiB")
	blackbox.Expect(t, blackbox.ExitOK, "http.batch: 1000 -> 7 (reload)\n1 of 2 changes need a restart", "", "config", "check", "-c", r.file, "--against", r.admin)
	if status, a := blackbox.AskReload(t, "POST", r.admin); status != 409 || !slices.Equal(a.Restart, []string{"tiers.memory"}) {
		t.Errorf("another budget: %d %+v", status, a)
	}

	r.write("http: { batch: 7 }\nlog: { level: warn }\ndrain: { timeout: 9s }\n", "order: [line_id]", "order: [-line_id]")
	want := []string{"resources.orders.children.lines.order", "http.batch", "drain.timeout", "log.level"}
	blackbox.Expect(t, blackbox.ExitOK, "4 changes, all take effect by a reload", "", "config", "check", "-c", r.file, "--against", r.admin)
	for _, method := range []string{"GET", "POST"} {
		status, a := blackbox.AskReload(t, method, r.admin)
		var keys []string
		for _, c := range a.Changes {
			keys = append(keys, c.Key)
		}
		if status != 200 || a.Reloaded != (method == "POST") || !slices.Equal(keys, want) {
			t.Errorf("%s: %d %+v", method, status, a)
		}
	}
	if status, _, body, err := blackbox.Get(t.Context(), r.admin+"/config"); err != nil || status != 200 || !strings.Contains(body, "batch: 7") {
		t.Errorf("/config: %d %s %v", status, body, err)
	}
	if status, _, body, err := blackbox.Get(t.Context(), r.http+"/depts?"+strings.Repeat("&key=1", 8)[1:]); err != nil || status != 400 {
		t.Errorf("a batch that is too large: %d %s %v", status, body, err)
	}
	blackbox.Expect(t, blackbox.ExitOK, "no difference", "", "config", "check", "-c", r.file, "--against", r.admin)

	// Reload by signal. The file must set the level info again so that the reload is logged.
	r.write("log: { level: info }\n")
	if err := r.process.Signal(syscall.SIGHUP); err != nil {
		t.Fatal(err)
	}
	r.awaitLog("configuration reloaded")
	if err := r.process.Signal(syscall.SIGTERM); err != nil {
		t.Fatal(err)
	}
	if code := blackbox.ExitCode(t, r.process, 20*time.Second); code != blackbox.ExitOK {
		t.Errorf("exit code %d\n%s", code, r.process.Log())
	}
}

// reloadsUnderLoad is the number of reloads, and turnsOf the number made in a second.
const (
	reloadsUnderLoad = 100
	turnsOf          = 10
)

// A hundred reloads under load: no request fails, unchanged documents stay cached, and no
// request waits for a reload.
func TestReloadsUnderLoad(t *testing.T) {
	r := newReloadable(t)
	l := &reloadLoad{t: t, base: r.http}
	var without, with measured
	l.start(4)
	testkit.Eventually(t, 20*time.Second, func() error { // the first answers are loaded
		if l.count.Load() < 2000 {
			return fmt.Errorf("%d answers", l.count.Load())
		}
		return nil
	})
	l.take()
	// Alternate every second, so that other load on the machine affects both equally.
	slowest := time.Duration(0)
	pace := time.NewTicker(time.Second / turnsOf)
	defer pace.Stop()
	for i := range reloadsUnderLoad {
		if i%turnsOf == 0 {
			for range turnsOf {
				<-pace.C
			}
			l.take().addTo(&without)
		}
		<-pace.C
		slowest = max(slowest, l.reload(r, i))
		if i%turnsOf == turnsOf-1 {
			l.take().addTo(&with)
		}
	}
	l.stop()
	p99Without, p99With := without.p99(), with.p99()
	t.Logf("%d reloads, the slowest took %v; unchanged resource: %d answers without reloads, p99 %v; %d with reloads, p99 %v; hit ratio %.4f and %.4f",
		reloadsUnderLoad, slowest.Round(time.Millisecond), without.all, p99Without, with.all, p99With, without.ratio(), with.ratio())
	if n := l.failed.Load(); n > 0 {
		t.Errorf("%d requests failed, the first with %v", n, *l.why.Load())
	}
	if with.hits < with.all {
		t.Errorf("%d of %d answers of the unchanged resource were not hits", with.all-with.hits, with.all)
	}
	// Below a few milliseconds, the scheduler of a busy machine determines the result.
	if p99With >= 2*max(p99Without, 2*time.Millisecond) {
		t.Errorf("p99 %v, want less than twice %v", p99With, p99Without)
	}
	if !strings.Contains(r.process.Log(), "configuration reloaded") {
		t.Error("the log does not mention the reloads")
	}
}

// reloadLoad requests documents continuously.
type reloadLoad struct {
	t       *testing.T
	base    string
	clients sync.WaitGroup
	over    atomic.Bool
	count   atomic.Int64
	failed  atomic.Int64
	why     atomic.Pointer[error]

	// Guarded by mu.
	mu       sync.Mutex
	measured // the answers of depts, which never changes
}

// measured holds the latencies of answers, and the number of hits.
type measured struct {
	took      []time.Duration
	hits, all int
}

func (m measured) addTo(sum *measured) {
	sum.took = append(sum.took, m.took...)
	sum.hits, sum.all = sum.hits+m.hits, sum.all+m.all
}

func (m measured) ratio() float64 { return float64(m.hits) / float64(max(m.all, 1)) }

func (m measured) p99() time.Duration {
	if len(m.took) == 0 {
		return 0
	}
	return slices.Sorted(slices.Values(m.took))[len(m.took)*99/100]
}

// reload makes the i-th reload, with another kind of change each time.
func (l *reloadLoad) reload(r *reloadable, i int) (took time.Duration) {
	l.t.Helper()
	switch i % 4 {
	case 0: // a definition
		r.write("", "order: [line_id]", "order: [-line_id]")
	case 1: // an additional resource
		r.write("", "\ntiers:", "\n  employees: { table: emp, key: [empno] }\n\ntiers:")
	case 2: // settings
		r.write("freshness: 2s\nhttp: { batch: 77, cors: { origins: [\"*\"] }, limits: { client: { rate: 10000000 } } }\n", "freshness: 1s\n", "")
	default:
		r.write("")
	}
	began := time.Now()
	if status, a := blackbox.AskReload(l.t, "POST", r.admin); status != 200 || !a.Reloaded || len(a.Changes) == 0 {
		l.t.Fatalf("reload %d: %d %+v", i, status, a)
	}
	return time.Since(began)
}

func (l *reloadLoad) start(clients int) {
	for i := range clients {
		random := testkit.Fork(uint64(i), 11)
		client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: 1}, Timeout: 10 * time.Second}
		l.clients.Go(func() {
			defer client.CloseIdleConnections()
			for !l.over.Load() {
				path := fmt.Sprintf("/depts/%d", 1+random.IntN(20))
				if random.IntN(4) == 0 {
					path = fmt.Sprintf("/orders/emea/%d", 1+random.IntN(20))
				}
				began := time.Now()
				hit, err := l.ask(client, path)
				took := time.Since(began)
				if err != nil {
					l.failed.Add(1)
					l.why.CompareAndSwap(nil, &err)
					continue
				}
				l.count.Add(1)
				l.mu.Lock()
				if strings.HasPrefix(path, "/depts/") {
					l.took = append(l.took, took)
					l.all++
					if hit {
						l.hits++
					}
				}
				l.mu.Unlock()
			}
		})
	}
}

func (l *reloadLoad) ask(client *http.Client, path string) (hit bool, err error) {
	rsp, err := client.Get(l.base + path)
	if err != nil {
		return false, err
	}
	defer rsp.Body.Close()
	body, err := io.ReadAll(rsp.Body)
	if err == nil && rsp.StatusCode != 200 && rsp.StatusCode != 404 {
		err = fmt.Errorf("%s: %d %s", path, rsp.StatusCode, body)
	}
	return rsp.Header.Get("Cache-Status") == "slipstream; hit", err
}

// take returns what was measured since the last call.
func (l *reloadLoad) take() measured {
	l.mu.Lock()
	defer l.mu.Unlock()
	m := l.measured
	l.measured = measured{}
	return m
}

func (l *reloadLoad) stop() {
	l.over.Store(true)
	l.clients.Wait()
}
