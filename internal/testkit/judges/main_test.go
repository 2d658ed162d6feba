package main

import (
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestNotesAreFindings(t *testing.T) {
	requests := []request{{Name: "a", want: 200}, {Name: "GET bad key", want: 400}}
	results := []noted{{Name: "a", Status: 404}, {Name: "GET bad key", Status: 400}}
	note := func(i int, id, level string) {
		results[i].Notes = append(results[i].Notes, struct {
			ID      string `json:"id"`
			Level   string `json:"level"`
			Summary string `json:"summary"`
		}{id, level, "text"})
	}
	note(0, "FINE", "good")
	note(0, "SO", "info")
	note(0, "STATUS_BAD_REQUEST", "warning")
	note(1, "STATUS_BAD_REQUEST", "warning")
	note(1, "WORSE", "bad")
	v, err := judgeNotes(requests, results)
	if err != nil || len(v.findings) != 4 {
		t.Fatalf("%d findings, %v; want the status and three notes", len(v.findings), err)
	}
	if open := v.counted("redbot"); len(open) != 3 {
		t.Errorf("%v is left, want all but the note on a bad request that was meant to be one", open)
	}
	var out strings.Builder
	v.print(&out, "redbot", 0)
	if got := out.String(); !strings.Contains(got, "redbot: a: status 404; expected 200 [status]\n") || !strings.Contains(got, "3 findings in 2 requests") {
		t.Errorf("got\n%s", got)
	}
	if _, err := judgeNotes(requests, results[:1]); err == nil {
		t.Error("a request without a result was accepted")
	}
}

func TestReportsAreFindings(t *testing.T) {
	const fine = `"complete":true,"operations":{"selected":2,"tested":2},"test_cases":{"generated":9}`
	for _, test := range []struct {
		name, text string
		failed     bool
		want       int
	}{
		{"content", `{` + fine + `}`, false, 0},
		{"failures", `{` + fine + `,"failures":[{"code":"ST1","title":"t","operations":["GET /a","GET /b"]}]}`, true, 2},
		{"errors", `{` + fine + `,"errors":[{"title":"e"}]}`, true, 1},
		{"an exit code alone", `{` + fine + `}`, true, 1},
		{"incomplete", `{"complete":false,"operations":{"selected":2,"tested":2},"test_cases":{"generated":9}}`, false, 1},
		{"one left out", `{"complete":true,"operations":{"selected":2,"tested":1},"test_cases":{"generated":9}}`, false, 1},
		{"nothing done", `{"complete":true}`, false, 1},
	} {
		v, err := judgeReport("x", []byte(test.text), "", test.failed)
		if err != nil || len(v.findings) != test.want {
			t.Errorf("%s: %v, %v; want %d findings", test.name, v.findings, err, test.want)
		}
	}
	if _, err := judgeReport("x", []byte("{"), "", false); err == nil {
		t.Error("a broken report was accepted")
	}
	const out = "x\n==== ERRORS ====\n___ GET /orders ___\nNetwork Error\n\n    [Errno 104] Connection reset by peer\n\nReproduce with:\n    curl\n" +
		"___ GET /orders/{a} ___\nNetwork Error\n\n    [Errno 104] Connection reset by peer\n___ GET /depts ___\nNetwork Error\n    [Errno 111] refused\n\n==== WARNINGS ====\ny\n"
	v, err := judgeReport("k", []byte(`{`+fine+`,"errors":[{"title":"e"}]}`), out, true)
	if err != nil || len(v.findings) != 3 || v.findings[0].text != "Network Error [Errno 104] Connection reset by peer" {
		t.Fatalf("%+v, %v; want three errors", v.findings, err)
	}
	if left := v.counted("schemathesis"); len(left) != 2 || left[0].where != "GET /orders/{a} with k" || left[1].where != "GET /depts with k" {
		t.Errorf("%+v is left, want all but a reset of a batch", left)
	}
	if got := shortLines("short\n"+strings.Repeat("x", 50), 10); got != "short\n"+strings.Repeat("x", 10)+"..." {
		t.Errorf("got %q", got)
	}
}

func TestAttacksAreFindings(t *testing.T) {
	const clean = "x\r[05:53:26] [ERROR] all tested parameters do not appear to be injectable. If\n404 (Not Found) - 2 times, 400 (Bad Request) - 908 times\n"
	if n, found, err := judgeAttack(clean); n != 910 || len(found) != 0 || err != nil {
		t.Errorf("clean: %d requests, %q, %v", n, found, err)
	}
	const hole = "---\nParameter: #1* (URI)\n    Type: boolean-based blind\n    Title: AND boolean-based blind\n    Payload: x\n---\n"
	if _, found, err := judgeAttack(hole); len(found) != 2 || err != nil {
		t.Errorf("hole: %q, %v, want the parameter and the title", found, err)
	}
	if _, _, err := judgeAttack("[CRITICAL] unable to connect to the target URL\n"); err == nil {
		t.Error("an attack that came to no end was accepted")
	}
}

func TestSlownessIsAFinding(t *testing.T) {
	const report = "status on 5th second:\n\ninitializing:        0\npending:             1\nconnected:           800\nerror:               0\nclosed:              200\nservice available:   %s\n"
	fine := fmt.Sprintf(report, "YES")
	seen := probed{asked: 100, slow: slowConnections, p99: 30 * time.Millisecond}
	with := func(change func(p *probed)) probed {
		p := seen
		change(&p)
		return p
	}
	for _, test := range []struct {
		name, out string
		attacked  probed
		want      string
	}{
		{"content", fine, seen, ""},
		{"twice as slow", fine, with(func(p *probed) { p.p99 *= 2 }), ""},
		{"slower", fine, with(func(p *probed) { p.p99 = 61 * time.Millisecond }), "slow"},
		{"failed", fine, with(func(p *probed) { p.failed = 1 }), "failed"},
		{"memory", fine, with(func(p *probed) { p.grown = slowMemory + 1 }), "memory"},
		{"not there", fine + fmt.Sprintf(report, "NO"), seen, "unavailable"},
		{"nobody connected", fine, with(func(p *probed) { p.slow = 10 }), "few"},
		{"nothing said", "connected: 1000\nclosed: 0\n", seen, "silent"},
	} {
		found := judgeSlow(test.out, test.attacked, seen)
		if (test.want == "") != (len(found) == 0) || len(found) > 1 || len(found) == 1 && found[0].id != test.want {
			t.Errorf("%s: %v, want %q", test.name, found, test.want)
		}
	}
}

func TestErrorsOfBenchmarksAreFindings(t *testing.T) {
	const fine = "get depts:42: 1666.67 requests per second, p50=0.391 msec\n"
	if perSecond, found := judgeBenchmark(fine); perSecond != "1666.67" || len(found) != 0 {
		t.Errorf("got %s, %v", perSecond, found)
	}
	for _, bad := range []string{"", "Error from server: ERR x\n" + fine, "WARNING: Could not fetch server CONFIG\n" + fine} {
		if _, found := judgeBenchmark(bad); len(found) != 1 {
			t.Errorf("%q: %v, want one finding", bad, found)
		}
	}
}
