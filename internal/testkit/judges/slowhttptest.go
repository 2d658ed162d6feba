package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"os"
	"os/exec"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// Limits for the effect of slow clients on others.
const (
	slowConnections = 1000
	slowSeconds     = 20
	// slower is the factor by which the 99th percentile of a probe may exceed that of the same
	// probe of another gateway, which is not attacked, at the same time: other load on the machine
	// slows down both. unfelt is a few time slices of the kernel's scheduler.
	slower = 2
	unfelt = 20 * time.Millisecond
	// slowMemory is how much the gateway may grow: a head of 64 KiB for each connection, and
	// garbage that has not been collected yet.
	slowMemory = 128 << 20
)

// slowhttptest runs 1,000 clients that are slow in three ways, while other requests are sent.
func (t *tools) slowhttptest(ctx context.Context, g *gateway) (verdict, error) {
	many := g.url + "/orders?"
	for i := range 300 {
		many += fmt.Sprintf("key=emea%%2F%d&", 2*i+1)
	}
	const document = "/orders/emea/17"
	var v verdict
	dir, err := os.MkdirTemp(t.dir, "calm-")
	if err != nil {
		return v, err
	}
	serving, stop := context.WithCancel(ctx)
	calm, wait, err := startGateway(serving, t.slipstream, dir)
	if err != nil {
		stop()
		return v, err
	}
	defer wait()
	defer stop()
	var looked []string
	for _, mode := range []struct {
		name string
		args []string
	}{
		{"slow heads", []string{"-H", "-i", "2", "-u", g.url + document}},
		{"slow bodies", []string{"-B", "-i", "2", "-s", "8192", "-u", g.url + document}},
		// Answers of 150 KB, read 32 bytes at a time through a window of 1 KB.
		{"slow reads", []string{"-X", "-k", "3", "-w", "512", "-y", "1024", "-n", "2", "-z", "32", "-u", strings.TrimSuffix(many, "&")}},
	} {
		out, attacked, other, err := g.slowly(ctx, mode.args, calm)
		if err != nil {
			return v, fmt.Errorf("slowhttptest: %s: %w", mode.name, err)
		}
		findings := judgeSlow(out, attacked, other)
		for _, f := range findings {
			v.add(mode.name, f.id, f.text)
		}
		looked = append(looked, fmt.Sprintf("%d %s (p99 of %d probes %v, of another gateway %v; memory grew by %d MiB)", attacked.slow, mode.name,
			attacked.asked, attacked.p99.Round(10*time.Microsecond), other.p99.Round(10*time.Microsecond), attacked.grown>>20))
	}
	v.looked = strings.Join(looked, ", ")
	return v, nil
}

// slowly runs the program to its end while it probes this gateway and another one.
func (g *gateway) slowly(ctx context.Context, args []string, calm *gateway) (out string, attacked, other probed, err error) {
	ctx, cancel := context.WithTimeout(ctx, slowSeconds*time.Second+time.Minute)
	defer cancel()
	common := []string{"-c", strconv.Itoa(slowConnections), "-r", "250", "-l", strconv.Itoa(slowSeconds), "-p", "3"}
	// It needs a descriptor for each connection, and the default limit is 1,024.
	c := exec.CommandContext(ctx, "sh", append([]string{"-c", `ulimit -n 4096 && exec slowhttptest "$@"`, "sh"}, append(common, args...)...)...)
	var text bytes.Buffer
	c.Stdout, c.Stderr = &text, &text
	before, err := g.accepted(ctx)
	if err != nil {
		return "", attacked, other, err
	}
	if err := c.Start(); err != nil {
		return "", attacked, other, err
	}
	ended := make(chan error, 1)
	// Ends with the program; the loop below waits for it.
	go func() { ended <- c.Wait() }()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for running := true; running; {
		// The first probe after a pause is the slower one.
		if attacked.asked%2 == 0 {
			attacked.ask(ctx, g)
			other.ask(ctx, calm)
		} else {
			other.ask(ctx, calm)
			attacked.ask(ctx, g)
		}
		select {
		case <-tick.C:
		case err = <-ended:
			running = false
		}
	}
	attacked.end()
	other.end()
	// Its exit code is not meaningful; judgeSlow reads its output.
	if exit, ok := errors.AsType[*exec.ExitError](err); ok && ctx.Err() == nil && exit.Exited() {
		err = nil
	}
	if err != nil {
		return "", attacked, other, fmt.Errorf("%w\n%s", err, text.Bytes())
	}
	after, err := g.accepted(ctx)
	attacked.slow = after - before - attacked.asked
	return colours.ReplaceAllString(text.String(), ""), attacked, other, err
}

// probed holds the results of a client that requests a document repeatedly, each time on a new
// connection.
type probed struct {
	asked, failed int
	why           string // why the last failed one failed
	took          []time.Duration
	p99           time.Duration
	first, grown  int64 // resident bytes at the start, and the maximum increase
	slow          int   // connections of other clients that the gateway accepted in the meantime
}

// slowProbe is a client that keeps no connection.
var slowProbe = &http.Client{Timeout: 5 * time.Second, Transport: &http.Transport{DisableKeepAlives: true}}

func (p *probed) ask(ctx context.Context, g *gateway) {
	begun := time.Now()
	err := g.ask(ctx, slowProbe)
	p.took = append(p.took, time.Since(begun))
	if p.asked++; p.asked%10 == 1 && err == nil {
		var n int64
		n, err = resident(g.pid)
		if p.asked == 1 {
			p.first = n
		}
		p.grown = max(p.grown, n-p.first)
	}
	if err != nil {
		p.failed, p.why = p.failed+1, err.Error()
	}
}

func (p *probed) end() {
	slices.Sort(p.took)
	p.p99 = p.took[len(p.took)*99/100]
}

func (g *gateway) ask(ctx context.Context, client *http.Client) error {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.url+"/depts/42", nil)
	if err != nil {
		return err
	}
	r.Header.Set("X-API-Key", g.apiKey)
	rsp, err := client.Do(r)
	if err != nil {
		return err
	}
	defer rsp.Body.Close()
	if _, err := io.Copy(io.Discard, rsp.Body); err != nil {
		return err
	}
	if rsp.StatusCode != http.StatusOK {
		return fmt.Errorf("status %d", rsp.StatusCode)
	}
	return nil
}

// resident returns the resident memory of a process, from Linux's /proc.
func resident(pid int) (int64, error) {
	text, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	m := regexp.MustCompile(`(?m)^VmRSS:\s+(\d+) kB$`).FindSubmatch(text)
	if m == nil {
		return 0, fmt.Errorf("process %d has no VmRSS", pid)
	}
	n, err := strconv.ParseInt(string(m[1]), 10, 64)
	return n << 10, err
}

var (
	colours        = regexp.MustCompile(`\x1b\[[0-9;]*[A-Za-z]`)
	slowAvailable  = regexp.MustCompile(`service available:\s*(YES|NO)`)
	acceptedFigure = regexp.MustCompile(`(?m)^slipstream_engine_accepted_total\{frontend="http"\} (\d+)$`)
)

// accepted returns how many connections the gateway has accepted: slowhttptest reports
// every five seconds, and may have lost all of them before.
func (g *gateway) accepted(ctx context.Context) (int, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodGet, g.admin+"/metrics", nil)
	if err != nil {
		return 0, err
	}
	rsp, err := http.DefaultClient.Do(r)
	if err != nil {
		return 0, err
	}
	defer rsp.Body.Close()
	page, err := io.ReadAll(rsp.Body)
	if err != nil {
		return 0, err
	}
	m := acceptedFigure.FindSubmatch(page)
	if m == nil {
		return 0, errors.New("/metrics does not have the number of accepted connections")
	}
	return strconv.Atoi(string(m[1]))
}

// judgeSlow reads the output of slowhttptest, and compares the probes of the attacked
// gateway with those of another.
func judgeSlow(out string, attacked, other probed) (found []finding) {
	add := func(id, format string, args ...any) {
		found = append(found, finding{id: id, text: fmt.Sprintf(format, args...)})
	}
	said := slowAvailable.FindAllStringSubmatch(out, -1)
	for i, s := range said {
		if s[1] != "YES" {
			add("unavailable", "at check %d the service was not available", i+1)
		}
	}
	if len(said) == 0 {
		add("silent", "the output does not say whether the service was available: %.300q", out)
	}
	if attacked.slow < slowConnections*9/10 {
		add("few", "%d connections were made, expected %d", attacked.slow, slowConnections)
	}
	if attacked.failed > 0 {
		add("failed", "%d of %d probes failed: %s", attacked.failed, attacked.asked, attacked.why)
	}
	if attacked.p99 > max(slower*other.p99, unfelt) {
		add("slow", "p99 of the probes is %v, of another gateway %v", attacked.p99, other.p99)
	}
	if attacked.grown > slowMemory {
		add("memory", "the gateway grew by %d MiB, expected at most %d", attacked.grown>>20, int64(slowMemory)>>20)
	}
	return found
}
