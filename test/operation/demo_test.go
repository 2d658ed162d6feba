package operation

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"net/http"
	"os"
	"os/exec"
	"path/filepath"
	"regexp"
	"strings"
	"syscall"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

var (
	curlLine  = regexp.MustCompile(`(?m)^  curl (http://[^\s]+)$`)
	adminLine = regexp.MustCompile(`(?m)^Operators: (http://[^/]+)/ready`)

	dashboardLine = regexp.MustCompile(`(?m)^Dashboard: (http://[^/]+/)$`)
)

// TestDemoStartsFast: the first printed line answers within a second of the start on an idle
// machine. The limit allows for a busy machine, and the best of three attempts counts.
func TestDemoStartsFast(t *testing.T) {
	const bound = 3 * time.Second
	best := time.Hour
	for attempt := 0; attempt < 3 && best > bound; attempt++ {
		begun := time.Now()
		p, _, _ := startDemo(t, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0")
		best = min(best, time.Since(begun))
		endDemo(t, p)
	}
	t.Logf("first answer %v after the process was started", best.Round(time.Millisecond))
	if best > bound {
		t.Errorf("the first answer came after %v; expected %v", best, bound)
	}
}

// startDemo runs the demo with its temporary files in a separate directory, and returns when the
// URL in the first printed line answers.
func startDemo(t *testing.T, args ...string) (p *testkit.Process, tmp string, urls []string) {
	t.Helper()
	tmp = t.TempDir()
	p = testkit.Start(t, testkit.Command{
		Path: blackbox.Program(), Args: append([]string{"demo"}, args...), Env: []string{"TMPDIR=" + tmp, "TMP=" + tmp},
	})
	testkit.Eventually(t, 30*time.Second, func() error {
		urls = nil
		for _, m := range curlLine.FindAllStringSubmatch(p.Log(), -1) {
			urls = append(urls, m[1])
		}
		if len(urls) < 4 || !strings.Contains(p.Log(), "Ctrl-C stops.") {
			return errors.New("the demo has not printed its lines")
		}
		status, _, _, err := blackbox.Get(t.Context(), urls[0])
		if err == nil && status != 200 {
			err = fmt.Errorf("%s: %d", urls[0], status)
		}
		return err
	})
	return p, tmp, urls
}

// endDemo ends the demo like Ctrl-C.
func endDemo(t *testing.T, p *testkit.Process) {
	t.Helper()
	if err := p.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if code := blackbox.ExitCode(t, p, 20*time.Second); code != blackbox.ExitOK || !strings.Contains(p.Log(), "Goodbye.") {
		t.Errorf("exit code %d after Ctrl-C\n%s", code, p.Log())
	}
}

func budget(ctx context.Context, url string) (int, error) {
	status, _, body, err := blackbox.Get(ctx, url)
	if err != nil || status != 200 {
		return 0, fmt.Errorf("%s: %d %w", url, status, err)
	}
	var dept struct{ Budget int }
	return dept.Budget, json.Unmarshal([]byte(body), &dept)
}

func TestDemo(t *testing.T) {
	p, tmp, urls := startDemo(t)
	base := strings.TrimSuffix(urls[0], "/depts/1")
	sizes := map[string]int{}
	for _, url := range urls {
		status, head, body, err := blackbox.Get(t.Context(), url)
		if err != nil || status != 200 || head.Get("Content-Type") != "application/json" || !json.Valid([]byte(body)) {
			t.Errorf("%s: %d %s %v", url, status, body, err)
		}
		sizes[strings.TrimPrefix(url, base)] = len(body)
	}
	t.Logf("bytes: %v", sizes)
	// The writer does not change this department.
	if n := sizes["/depts/1000"]; n < 1600 || n > 1800 {
		t.Errorf("/depts/1000 has %d bytes; expected 1,600 to 1,800", n)
	}
	_, head, _, err := blackbox.Get(t.Context(), base+"/depts/1000")
	if err != nil {
		t.Fatal(err)
	}
	if status, _, body, err := blackbox.Get(t.Context(), base+"/depts/1000", "If-None-Match", head.Get("ETag")); err != nil || status != 304 || body != "" {
		t.Errorf("request with the document's ETag: %d %s %v", status, body, err)
	}

	// The document that the demo suggests watching changes.
	before, err := budget(t.Context(), base+"/depts/42")
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		now, err := budget(t.Context(), base+"/depts/42")
		if err == nil && now <= before {
			err = fmt.Errorf("budget %d has not grown", now)
		}
		return err
	})
	admin := adminLine.FindStringSubmatch(p.Log())
	if admin == nil {
		t.Fatalf("no admin address\n%s", p.Log())
	}
	if status, _, body, err := blackbox.Get(t.Context(), admin[1]+"/ready"); err != nil || status != 200 {
		t.Errorf("/ready: %d %s %v", status, body, err)
	}
	dashboard := dashboardLine.FindStringSubmatch(p.Log())
	if dashboard == nil {
		t.Fatalf("no address of the dashboard\n%s", p.Log())
	}
	if status, head, body, err := blackbox.Get(t.Context(), dashboard[1]); err != nil || status != 200 || !strings.HasPrefix(head.Get("Content-Type"), "text/html") {
		t.Errorf("%s: %d %.100s %v", dashboard[1], status, body, err)
	}
	endDemo(t, p)
	expectEmpty(t, tmp)
}

// TestDemoLeavesNothing: the demo removes its files however it ends, such as by a wrong port or the
// end of the terminal, and even if its output is not read.
func TestDemoLeavesNothing(t *testing.T) {
	for _, sig := range []syscall.Signal{syscall.SIGTERM, syscall.SIGHUP} {
		p, tmp, _ := startDemo(t, "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0")
		if err := p.Signal(sig); err != nil {
			t.Fatal(err)
		}
		if code := blackbox.ExitCode(t, p, 20*time.Second); code != blackbox.ExitOK {
			t.Errorf("%v: exit code %d", sig, code)
		}
		expectEmpty(t, tmp)
	}
	tmp := t.TempDir()
	t.Setenv("TMPDIR", tmp)
	blackbox.Expect(t, blackbox.ExitFailure, "", "no such address", "demo", "--http", "192.0.2.1:80", "--admin", "127.0.0.1:0")
	expectEmpty(t, tmp)

	admin := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	c := exec.CommandContext(t.Context(), blackbox.Program(), "demo", "--http", "127.0.0.1:0", "--admin", admin)
	output, err := c.StdoutPipe()
	if err != nil {
		t.Fatal(err)
	}
	if err := c.Start(); err != nil {
		t.Fatal(err)
	}
	output.Close()
	testkit.Eventually(t, time.Minute, func() error {
		status, _, _, err := blackbox.Get(t.Context(), "http://"+admin+"/ready")
		if err == nil && status != http.StatusOK {
			err = fmt.Errorf("status %d", status)
		}
		return err
	})
	time.Sleep(200 * time.Millisecond) // until it has printed into the closed pipe
	if err := c.Process.Signal(os.Interrupt); err != nil {
		t.Fatal(err)
	}
	if err := c.Wait(); err != nil {
		t.Errorf("with a closed output: %v", err)
	}
	expectEmpty(t, tmp)
}

func expectEmpty(t *testing.T, dir string) {
	t.Helper()
	if left, err := os.ReadDir(dir); err != nil || len(left) > 0 {
		t.Errorf("files left behind: %v %v", left, err)
	}
}

// TestTwoDemos: the second one finds the default ports in use and chooses others.
func TestTwoDemos(t *testing.T) {
	one, _, first := startDemo(t, "--no-writer")
	two, _, second := startDemo(t, "--no-writer")
	if first[0] == second[0] {
		t.Errorf("both serve %s", first[0])
	}
	endDemo(t, two)
	if _, _, _, err := blackbox.Get(t.Context(), first[0]); err != nil {
		t.Errorf("the first demo: %v", err)
	}
	endDemo(t, one)
	if !strings.Contains(one.Log(), " 0 changes written") {
		t.Errorf("the demo has written in spite of --no-writer\n%s", one.Log())
	}
}

func TestDemoOnAChosenPort(t *testing.T) {
	address := fmt.Sprintf("127.0.0.1:%d", testkit.FreePort(t))
	p, _, urls := startDemo(t, "--http", address, "--admin", "127.0.0.1:0")
	if !strings.HasPrefix(urls[0], "http://"+address+"/") {
		t.Errorf("serves %s; expected %s", urls[0], address)
	}
	blackbox.Expect(t, blackbox.ExitFailure, "", "another process listens there", "demo", "--http", address)
	endDemo(t, p)
}

func TestDemoKeep(t *testing.T) {
	dir := filepath.Join(t.TempDir(), "kept")
	p, tmp, urls := startDemo(t, "--keep", dir, "--rate", "200", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	at := strings.Replace(urls[0], "/depts/1", "/depts/42", 1)
	before, err := budget(t.Context(), at)
	if err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 5*time.Second, func() error {
		now, err := budget(t.Context(), at)
		if err == nil && now == before {
			err = errors.New("budget has not changed")
		}
		before = max(before, now)
		return err
	})
	endDemo(t, p)
	expectEmpty(t, tmp)
	if _, err := os.Stat(filepath.Join(dir, blackbox.DemoFile)); err != nil {
		t.Fatal(err)
	}

	// The second run continues with the kept database.
	p, _, urls = startDemo(t, "--keep", dir, "--rate", "200", "--http", "127.0.0.1:0", "--admin", "127.0.0.1:0")
	now, err := budget(t.Context(), strings.Replace(urls[0], "/depts/1", "/depts/42", 1))
	if err != nil || now < before {
		t.Errorf("budget %d, %v; expected %d or more", now, err, before)
	}
	endDemo(t, p)
	if strings.Contains(p.Log(), "writer has stopped") {
		t.Errorf("the second writer failed\n%s", p.Log())
	}
}

// TestDemoConfig: the output of --print-config is a valid configuration.
func TestDemoConfig(t *testing.T) {
	r := blackbox.Expect(t, blackbox.ExitOK, "key: [region, order_no]", "", "demo", "--print-config")
	file := blackbox.WriteFile(t, "slipstream.yaml", r.Stdout)
	blackbox.Expect(t, blackbox.ExitOK, "2 resources", "", "config", "check", "--offline", "-c", file)
}
