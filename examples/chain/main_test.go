package main

import (
	"context"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"strconv"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/promtest"
)

// patience is how long the test waits for a condition.
const patience = 60 * time.Second

// serviceVariable, if set, makes the test program run as one of the services. Its value holds the arguments.
const serviceVariable = "SLIPSTREAM_CHAIN"

func TestMain(m *testing.M) {
	if args := os.Getenv(serviceVariable); args != "" {
		os.Args = append(os.Args[:1], strings.Fields(args)...)
		main()
		return
	}
	os.Exit(m.Run())
}

// service is a process of the chain that can be killed and restarted.
type service struct {
	*testkit.Process
	command testkit.Command
}

func startService(t *testing.T, kind, addr string, more ...string) *service {
	t.Helper()
	c := testkit.Command{Path: os.Args[0], Env: []string{serviceVariable + "=" + strings.Join(append([]string{kind, addr}, more...), " ")}, Ready: func(ctx context.Context) error {
		c, err := new(net.Dialer).DialContext(ctx, "tcp", addr)
		if err == nil {
			c.Close()
		}
		return err
	}}
	return &service{testkit.Start(t, c), c}
}

// Restart starts the service again.
func (s *service) Restart(t testing.TB) { s.Process = testkit.Start(t, s.command) }

// tally counts the answers that clients have received.
type tally struct {
	mu sync.Mutex
	// Guarded by mu.
	sold, unknown int            // by POST: counted, and perhaps counted
	codes         map[string]int // number of answers by method and status; status 0 if there was none
}

// request makes a request and records the answer. It returns the status, or 0 if there is no answer.
func (y *tally) request(method, url string) int {
	req, err := http.NewRequest(method, url, nil)
	if err != nil {
		panic(err)
	}
	code := 0
	client := &http.Client{Timeout: patience}
	if rsp, err := client.Do(req); err == nil {
		if _, err := io.Copy(io.Discard, rsp.Body); err == nil {
			code = rsp.StatusCode
		}
		_ = rsp.Body.Close()
	}
	client.CloseIdleConnections()
	y.mu.Lock()
	defer y.mu.Unlock()
	y.codes[fmt.Sprint(method, " ", code)]++
	if method == http.MethodPost {
		switch code {
		case http.StatusOK:
			y.sold++
		case http.StatusServiceUnavailable: // certainly not counted
		default:
			y.unknown++
		}
	}
	return code
}

// take returns the codes recorded since the last call.
func (y *tally) take() map[string]int {
	y.mu.Lock()
	defer y.mu.Unlock()
	codes := y.codes
	y.codes = make(map[string]int)
	return codes
}

// Each process of the chain is killed and restarted under load. Requests are answered all the time, with errors that
// tell whether the sale may have been counted; the chain recovers; and no sale is lost or counted twice.
func TestEachServiceIsKilled(t *testing.T) {
	redis := testkit.StartRedis(t, "--appendonly", "yes", "--appendfsync", "always")
	free := func() string { return fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t)) }
	salesAddr, webAddr, metricsAddr := free(), free(), free()
	sales := startService(t, "sales", salesAddr, redis.Addr, metricsAddr)
	web := startService(t, "web", webAddr, salesAddr)
	url := "http://" + webAddr + "/sales/mug"

	y := &tally{codes: make(map[string]int)}
	ctx, stop := context.WithCancel(t.Context())
	var all sync.WaitGroup
	for i := range 8 {
		method := http.MethodGet
		if i%2 == 0 {
			method = http.MethodPost
		}
		// ctx ends it, and the test waits for it.
		all.Go(func() {
			for ctx.Err() == nil {
				if y.request(method, url) != http.StatusOK {
					time.Sleep(10 * time.Millisecond)
				}
			}
		})
	}
	defer all.Wait()
	defer stop()
	await := func(what string, done func(codes map[string]int) bool) {
		t.Helper()
		codes := make(map[string]int)
		testkit.Eventually(t, patience, func() error {
			for code, n := range y.take() {
				codes[code] += n
			}
			if !done(codes) {
				return fmt.Errorf("%s: %v", what, codes)
			}
			return nil
		})
		t.Logf("%s: %v", what, codes)
	}
	works := func(codes map[string]int) bool { return codes["GET 200"] >= 20 && codes["POST 200"] >= 20 }
	await("before", works)
	pages := func() map[string]string {
		return map[string]string{"web": scrape(webAddr), "sales": scrape(metricsAddr)}
	}
	shows := func(what string, want ...sample) {
		t.Helper()
		testkit.Eventually(t, patience, func() error { return missing(pages(), want) })
		t.Logf("%s: the metrics are as README.md says", what)
	}
	connected := []sample{{"web", `slipstream_client_connections{client="sales"}`, "[1-9].*"}, {"sales", `slipstream_client_connections{client="redis"}`, "[1-9].*"}}
	shows("before", connected...)
	for name, one := range map[string]struct {
		kill    func()
		restart func(t testing.TB)
		want    string   // an answer while the process is down
		shown   []sample // meanwhile
	}{
		"redis": {redis.Kill, redis.Restart, "503", []sample{
			{"sales", `slipstream_client_connections{client="redis"}`, "0"}, {"web", `slipstream_client_connections{client="sales"}`, "[1-9].*"},
			{"sales", `chain_call_duration_seconds_count{function="sold",result="503"}`, "[1-9].*"}, {"web", `chain_http_request_duration_seconds_count{code="503",method="get"}`, "[1-9].*"},
			{"web", `slipstream_client_call_duration_seconds_count{op="sold",outcome="executed",system="thrift"}`, "[1-9].*"},
			{"sales", `slipstream_client_call_duration_seconds_count{op="INCR",outcome="not sent",system="redis"}`, "[1-9].*"},
		}},
		"sales": {func() { sales.Kill() }, sales.Restart, "503", []sample{
			{"sales", "", ""}, {"web", `slipstream_client_connections{client="sales"}`, "0"}, {"web", `slipstream_client_disconnects_total{client="sales"}`, "[1-9].*"},
			{"web", `slipstream_client_call_duration_seconds_count{op="sold",outcome="not sent",system="thrift"}`, "[1-9].*"},
		}},
		"web": {func() { web.Kill() }, web.Restart, "0", []sample{{"web", "", ""}, connected[1]}},
	} {
		one.kill()
		await(name+" is away", func(codes map[string]int) bool {
			for code := range codes {
				switch _, code, _ := strings.Cut(code, " "); {
				case code == "200", code == "503", code == "504", code == "0" && name == "web":
				default:
					t.Errorf("%s is away: the answer %s", name, code)
				}
			}
			return codes["GET "+one.want] > 0 && codes["POST "+one.want] > 0
		})
		shows(name+" is away", one.shown...)
		one.restart(t)
		y.take()
		await(name+" is back", works)
		shows(name+" is back", connected...)
	}
	shown := promtest.Exposed{}
	for _, page := range pages() {
		if err := shown.Add(page); err != nil {
			t.Fatal(err)
		}
	}
	checkDashboard(t, shown)
	stop()
	all.Wait()
	rsp, err := http.Get(url)
	if err != nil {
		t.Fatal(err)
	}
	defer rsp.Body.Close()
	text, err := io.ReadAll(rsp.Body)
	if err != nil {
		t.Fatal(err)
	}
	count, err := strconv.Atoi(strings.TrimSpace(string(text)))
	y.mu.Lock()
	defer y.mu.Unlock()
	t.Logf("%d sales; clients got %d confirmed and %d unknown", count, y.sold, y.unknown)
	if err != nil || count < y.sold || count > y.sold+y.unknown {
		t.Errorf("%q sales (%v); clients got %d confirmed and %d unknown", text, err, y.sold, y.unknown)
	}
}
