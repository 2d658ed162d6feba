package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"runtime/metrics"
	"slices"
	"strings"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/bench/internal/redisserver"
	"github.com/slipstream-go/slipstream/internal/load"
)

const (
	// evilMemory is the memory that a client may allocate before a case counts as excessive.
	evilMemory = 512 << 20
	// evilAddressSpace is the limit at which a process that allocates much more is killed.
	evilAddressSpace = 4 << 30
	// evilPatience is the deadline of every call.
	evilPatience = time.Second
	// evilHang is how long after its deadline a call may take before it counts as hanging.
	evilHang = 5 * time.Second
	// evilLimit is how long one case may take: two hanging calls plus a margin.
	evilLimit = 20 * time.Second
	// evilRecovery is how long a client may take until its calls get answers again: some wait five
	// seconds before they give up a connection.
	evilRecovery = 6 * time.Second
	// evilParallel is the number of cases that run concurrently.
	evilParallel = 2
	// evilAfter is the number of valid calls that follow.
	evilAfter = 8
)

// Results of a case, from best to worst.
const (
	resultRight   = "right"        // right answers for evilKey and for all keys after it
	resultError   = "error"        // the expected result
	resultTimeout = "time-out"     // the caller's deadline ended the call
	resultHang    = "hang"         // the call did not end even then
	resultWrong   = "wrong answer" // without an error, from this call or a later one
	resultMemory  = "memory"       // more than evilMemory
	resultPanic   = "panic"        // the process has crashed
)

// probeEvil requests evilKey and then other keys, and returns the worst result.
func probeEvil(ctx context.Context, s probeSpec) (probeOutcome, error) {
	limitAddressSpace(evilAddressSpace)
	// Ends with the process.
	go watchMemory()
	opened := make(chan error, 1)
	var c redisload.Client
	// Ends when the client is open or has failed; a client that hangs there is abandoned until the
	// process ends.
	go func() {
		var err error
		c, err = redisload.Open(ctx, s.Subject, redisload.Setting{Address: s.Address, Callers: 4, Single: true, Timeout: evilPatience})
		opened <- err
	}()
	select {
	case err := <-opened:
		if err != nil {
			return probeOutcome{Result: resultError, Detail: "open: " + firstLine(err.Error()), After: "never opened"}, nil
		}
	case <-time.After(evilPatience + evilHang):
		return probeOutcome{Result: resultHang, Detail: "open", After: "never opened"}, nil
	}
	outcome := probeOutcome{}
	note := func(result, detail string) {
		if outcome.Result == "" || severity(result) > severity(outcome.Result) {
			outcome.Result, outcome.Detail = result, detail
		}
	}
	first := redisserver.Key(1)
	if result, detail := evilCall(ctx, c, first); result != resultRight {
		note(result, "before the case: "+detail)
	}
	result, detail := evilCall(ctx, c, evilKey)
	note(result, detail)
	if result == resultHang {
		outcome.After = "not tried"
		return outcome, nil
	}
	time.Sleep(100 * time.Millisecond) // for late replies
	outcome.After = afterBroken
	var calls sync.WaitGroup
	var mu sync.Mutex
	for i := range evilAfter {
		// Ends by its deadline or that of a hang; waited for below.
		calls.Go(func() {
			result, detail := evilCall(ctx, c, redisserver.Key(100+i))
			mu.Lock()
			defer mu.Unlock()
			if result == resultWrong || result == resultHang {
				note(result, "a call after the case: "+detail)
			}
		})
	}
	calls.Wait()
	// Each key is requested once, because the late reply for a key would be accepted by the next
	// call for it.
	until := time.Now().Add(evilRecovery)
	for i := 200; outcome.After == afterBroken && time.Now().Before(until); i++ {
		time.Sleep(100 * time.Millisecond)
		result, _ := evilCall(ctx, c, redisserver.Key(i))
		if result == resultRight {
			outcome.After = "works"
		}
		if result == resultHang {
			break
		}
	}
	return outcome, nil
}

// afterBroken means that no further call got an answer.
const afterBroken = "broken"

func severity(result string) int {
	return slices.Index([]string{resultRight, resultError, resultTimeout, resultHang, resultWrong, resultMemory, resultPanic}, result)
}

// evilCall requests one key.
func evilCall(ctx context.Context, c redisload.Client, key string) (result, detail string) {
	ctx, cancel := context.WithTimeout(ctx, evilPatience)
	defer cancel()
	type reply struct {
		value []byte
		err   error
	}
	done := make(chan reply, 1)
	// Ends with the call; a hanging call is abandoned until the process ends.
	go func() {
		value, err := c.Get(ctx, make([]byte, 0, evilSize+64), key)
		done <- reply{slices.Clone(value), err}
	}()
	select {
	case r := <-done:
		switch {
		case r.err != nil && timedOut(r.err):
			return resultTimeout, firstLine(r.err.Error())
		case r.err != nil:
			return resultError, firstLine(r.err.Error())
		}
		if err := redisserver.Check(key, r.value, evilSize); err != nil {
			return resultWrong, fmt.Sprintf("%.40q for %s", r.value, key)
		}
		return resultRight, ""
	case <-time.After(evilPatience + evilHang):
		return resultHang, "no return from GET " + key
	}
}

// timedOut reports whether an error was caused by a deadline, by its text if a client does not wrap
// it.
func timedOut(err error) bool {
	var timeout net.Error
	text := err.Error()
	return errors.Is(err, context.DeadlineExceeded) || errors.As(err, &timeout) && timeout.Timeout() ||
		strings.Contains(text, "deadline exceeded") || strings.Contains(text, "timeout")
}

// watchMemory ends the process when it has allocated too much. It never returns.
func watchMemory() {
	samples := []metrics.Sample{{Name: "/memory/classes/total:bytes"}, {Name: "/memory/classes/heap/released:bytes"}}
	for {
		metrics.Read(samples)
		if taken := samples[0].Value.Uint64() - samples[1].Value.Uint64(); taken > evilMemory {
			_ = json.NewEncoder(os.Stdout).Encode(probeOutcome{Result: resultMemory, Detail: fmt.Sprintf("%d MiB", taken>>20), After: "stopped"})
			os.Exit(0)
		}
		time.Sleep(5 * time.Millisecond)
	}
}

// An evilRow is the result of one client in one case.
type evilRow struct {
	Case     string `json:"case"`
	Harmless bool   `json:"harmless,omitempty"` // the case is valid, so "right" is expected
	Subject  string `json:"subject"`
	Result   string `json:"result"`
	Detail   string `json:"detail,omitempty"`
	// After says whether later calls on the same client succeed.
	After string `json:"after"`
}

// evilResults is the file redis-evil.json.
type evilResults struct {
	Environment load.Environment `json:"environment"`
	Rows        []evilRow        `json:"rows"`
}

const evilFile = suiteName + "-evil.json"

// runEvil runs every client with every case.
func runEvil(ctx context.Context, o options, place command.Place, stdout, stderr io.Writer) error {
	var cases []evilCase
	for _, c := range evilCases() {
		if o.cases == "" || slices.ContainsFunc(strings.Split(o.cases, ","), func(begin string) bool { return strings.HasPrefix(c.name, begin) }) {
			cases = append(cases, c)
		}
	}
	var subjects []string
	for _, k := range redisload.Kinds() {
		if !k.Variant && (o.Subjects == "" || slices.Contains(strings.Split(o.Subjects, ","), k.Name)) {
			subjects = append(subjects, k.Name)
		}
	}
	results := evilResults{Environment: load.Describe("cd bench && go run ./redis -evil"), Rows: make([]evilRow, len(cases)*len(subjects))}
	var workers sync.WaitGroup
	slots := make(chan struct{}, evilParallel)
	errs := make([]error, len(results.Rows))
	for i, c := range cases {
		fmt.Fprintf(stderr, "evil %d/%d: %s\n", i+1, len(cases), c.name)
		for j, subject := range subjects {
			slots <- struct{}{}
			// Ends with its process, which ends by its limit; waited for below.
			workers.Go(func() {
				at := i*len(subjects) + j
				results.Rows[at], errs[at] = evilOnce(ctx, c, subject, o.limit)
				<-slots
			})
		}
	}
	workers.Wait()
	if err := errors.Join(errs...); err != nil {
		return err
	}
	if o.cases == "" && o.Subjects == "" {
		if err := storeEvil(filepath.Join(place.Results, evilFile), results); err != nil {
			return err
		}
	}
	return evilMarkdown(stdout, results.Rows)
}

// evilOnce runs one case in a separate process.
func evilOnce(ctx context.Context, c evilCase, subject string, limit time.Duration) (evilRow, error) {
	row := evilRow{Case: c.name, Harmless: c.harmless, Subject: subject}
	server, err := startHostile(c)
	if err != nil {
		return row, err
	}
	defer server.close()
	limited, cancel := context.WithTimeout(ctx, limit)
	defer cancel()
	p, err := startProbe(limited, probeSpec{Probe: "evil", Subject: subject, Address: server.listener.Addr().String()})
	if err != nil {
		return row, err
	}
	outcome, err := p.wait()
	if ctx.Err() != nil {
		return row, ctx.Err()
	}
	row.Result, row.Detail, row.After = outcome.Result, outcome.Detail, outcome.After
	if err != nil {
		row.Result, row.Detail, row.After = death(limited, p.stderr.String(), err), deathLine(p.stderr.String()), "dead"
	}
	return row, nil
}

// death returns the reason why a process ended.
func death(limited context.Context, stderr string, err error) string {
	switch {
	case limited.Err() != nil:
		return resultHang
	case strings.Contains(stderr, "out of memory") || strings.Contains(stderr, "cannot allocate memory"):
		return resultMemory
	case strings.Contains(stderr, "panic:") || strings.Contains(stderr, "fatal error:"):
		return resultPanic
	}
	return "unknown: " + err.Error()
}

func deathLine(stderr string) string {
	for line := range strings.Lines(stderr) {
		if strings.Contains(line, "panic:") || strings.Contains(line, "fatal error:") || strings.Contains(line, "out of memory") || strings.Contains(line, "stack exceeds") {
			return firstLine(line)
		}
	}
	return firstLine(stderr)
}

func storeEvil(path string, results evilResults) error {
	var out strings.Builder
	env, err := json.Marshal(results.Environment)
	if err != nil {
		return err
	}
	fmt.Fprintf(&out, "{\"environment\":%s,\n\"rows\":[\n", env)
	for i, row := range results.Rows {
		line, err := json.Marshal(row)
		if err != nil {
			return err
		}
		out.Write(line)
		if i < len(results.Rows)-1 {
			out.WriteByte(',')
		}
		out.WriteByte('\n')
	}
	out.WriteString("]}\n")
	if err := os.MkdirAll(filepath.Dir(path), 0o755); err != nil {
		return err
	}
	return os.WriteFile(path, []byte(out.String()), 0o644)
}

// writeEvilMarkdown prints the stored results, if there are any.
func writeEvilMarkdown(w io.Writer, directory string) error {
	data, err := os.ReadFile(filepath.Join(directory, evilFile))
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	var results evilResults
	if err := json.Unmarshal(data, &results); err != nil {
		return fmt.Errorf("%s: %w", evilFile, err)
	}
	return evilMarkdown(w, results.Rows)
}

// evilMarkdown prints a table with a row for each case and a column for each client, and one with
// the counts of results.
func evilMarkdown(w io.Writer, rows []evilRow) error {
	var subjects, cases []string
	cells := map[[2]string]string{}
	counts := map[[2]string]int{}
	for _, r := range rows {
		if !slices.Contains(subjects, r.Subject) {
			subjects = append(subjects, r.Subject)
		}
		name := r.Case
		if r.Harmless {
			name += " (valid)"
		}
		if !slices.Contains(cases, name) {
			cases = append(cases, name)
		}
		cell := r.Result
		if r.After == afterBroken {
			cell += ", then broken"
		}
		cells[[2]string{name, r.Subject}] = cell
		counts[[2]string{r.Result, r.Subject}]++
		if r.After == afterBroken {
			counts[[2]string{"then broken", r.Subject}]++
		}
	}
	var b strings.Builder
	head := "| " + strings.Join(subjects, " | ") + " |\n|---|" + strings.Repeat("---|", len(subjects)) + "\n"
	b.WriteString("**hostile server**\n\n| case " + head)
	for _, c := range cases {
		fmt.Fprintf(&b, "| %s |", c)
		for _, s := range subjects {
			fmt.Fprintf(&b, " %s |", cells[[2]string{c, s}])
		}
		b.WriteByte('\n')
	}
	b.WriteString("\n| cases that ended with " + head)
	for _, result := range []string{resultRight, resultError, resultTimeout, resultHang, resultWrong, resultMemory, resultPanic, "then broken"} {
		fmt.Fprintf(&b, "| %s |", result)
		for _, s := range subjects {
			fmt.Fprintf(&b, " %d |", counts[[2]string{result, s}])
		}
		b.WriteByte('\n')
	}
	b.WriteByte('\n')
	_, err := io.WriteString(w, b.String())
	return err
}
