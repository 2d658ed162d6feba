package main

import (
	"encoding/json"
	"net/http"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// profiledServer starts a server that has profiles, and returns its URL.
func profiledServer(t *testing.T) string {
	t.Helper()
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	mux.HandleFunc("/", func(http.ResponseWriter, *http.Request) {})
	return server(t, mux.ServeHTTP)
}

func TestBenchProfiles(t *testing.T) {
	url := profiledServer(t)
	dir := filepath.Join(t.TempDir(), "profiles")
	report, page := filepath.Join(t.TempDir(), "report.json"), filepath.Join(t.TempDir(), "report.html")
	expectBench(t, exitOK, "CPU time, by functions, including what they call\n", "",
		"http", "-c", "2", "-z", "3s", "--warm-up", "0", "--profile", url, "--profile-dir", dir, "--json", report, "--html", page, url)
	for _, name := range []string{"cpu.pprof", "allocs.pprof", "heap.pprof", "mutex.pprof", "block.pprof", "goroutine.pprof", "threadcreate.pprof", "trace.out"} {
		if info, err := os.Stat(filepath.Join(dir, name)); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	text, err := os.ReadFile(report)
	if err != nil {
		t.Fatal(err)
	}
	var got struct {
		Profiles []struct {
			Of       string
			Profiles []struct {
				Name, File, Missing string
				Tables              []struct{ Total int64 }
			}
		}
		Timeline []struct{ Completed int }
	}
	if err := json.Unmarshal(text, &got); err != nil || len(got.Profiles) != 1 || got.Profiles[0].Of != url+"/debug/pprof/" || len(got.Profiles[0].Profiles) != 8 {
		t.Fatalf("%v, %+v", err, got)
	}
	for _, p := range got.Profiles[0].Profiles {
		if p.Missing != "" || p.File == "" || p.Name == "cpu" && (len(p.Tables) != 1 || p.Tables[0].Total <= 0) {
			t.Errorf("%+v", p)
		}
	}
	if len(got.Timeline) < 2 {
		t.Errorf("a time line of %d seconds", len(got.Timeline))
	}
	again := filepath.Join(t.TempDir(), "again")
	expectBench(t, exitOK, "share of CPU time, by functions themselves, that differs most from that of an earlier run\n", "",
		"http", "-c", "2", "-z", "3s", "--warm-up", "0", "--profile", url, "--profile-dir", again, "--profile-base", filepath.Join(dir, "cpu.pprof"), url)
	expectBench(t, exitFailure, "", "heap.pprof: a profile that does not contain CPU time; expected a cpu.pprof",
		"http", "--profile", url, "--profile-base", filepath.Join(dir, "heap.pprof"), url)
	if text, err := os.ReadFile(page); err != nil || !strings.HasPrefix(string(text), "<!DOCTYPE html>") || !strings.Contains(string(text), `class="flame"`) {
		t.Errorf("%v, %.100s", err, text)
	}
}

// mutant: bench-profiles-other-machines
func TestBenchProfilesStayOnThisMachine(t *testing.T) {
	url := server(t, http.NotFound)
	expectBench(t, exitUsage, "", "192.0.2.1:6060: not on this machine; expected --yes", "http", "--profile", "http://192.0.2.1:6060", url)
}

func TestBenchWithoutProfiles(t *testing.T) {
	url := server(t, http.NotFound)
	expectBench(t, exitFailure, "", "/debug/pprof/threadcreate returned 404 Not Found", "http", "--profile", url, url)
	expectBench(t, exitFailure, "", "hint: a program serves its profiles if it imports net/http/pprof", "http", "--profile", url, url)
	for _, test := range []struct {
		args   []string
		stderr string
	}{
		{[]string{"-n", "10", "--profile", url}, "expected a duration of at least 3s"},
		{[]string{"-z", "2s", "--profile", url}, "expected a duration of at least 3s"},
		{[]string{"--profile-dir", "x"}, "--profile-dir and --profile-base need --profile"},
		{[]string{"--vs", url, "--profile", url, "--profile-base", "cpu.pprof"}, "none of the others can be"},
		{[]string{"--vs-profile", url}, "--vs-profile need --vs"},
		{[]string{"--json", "-", "--html", "-"}, "expected only one of them"},
	} {
		blackbox.Expect(t, exitUsage, "", test.stderr, append([]string{"bench", "http", url}, test.args...)...)
	}
}

// Profiles are taken in runs after those that are compared, of both servers, and the page shows how they differ.
func TestBenchProfilesOfBothServers(t *testing.T) {
	a, b := profiledServer(t), profiledServer(t)
	dir, page := filepath.Join(t.TempDir(), "profiles"), filepath.Join(t.TempDir(), "report.html")
	r := runBench(t, "http", "-c", "2", "-n", "50", "--warm-up", "0", "--rounds", "1", "--vs", b, "--profile", a, "--vs-profile", b, "--profile-dir", dir, "--html", page, a)
	if r.Code != exitOK && r.Code != exitLimited || !strings.Contains(r.Stdout, "by functions themselves, that differs most from that of A\n") || !strings.Contains(r.Stderr, "profiles of GET "+b) {
		t.Errorf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	for _, name := range []string{"A/cpu.pprof", "B/cpu.pprof", "A/heap.pprof", "B/trace.out"} {
		if info, err := os.Stat(filepath.Join(dir, filepath.FromSlash(name))); err != nil || info.Size() == 0 {
			t.Errorf("%s: %v", name, err)
		}
	}
	if text, err := os.ReadFile(page); err != nil || !strings.Contains(string(text), ", compared with that of A") || strings.Count(string(text), `class="flame"`) != 3 {
		t.Errorf("%v, %d flame graphs", err, strings.Count(string(text), `class="flame"`))
	}
}

// Profiles of the highest rate are taken in a last run.
func TestBenchProfilesOfTheKnee(t *testing.T) {
	url := profiledServer(t)
	dir := filepath.Join(t.TempDir(), "profiles")
	r := runBench(t, "http", "-c", "2", "-z", "200ms", "--warm-up", "0", "--find-knee", "--p99", "10s", "-q", "100", "--profile", url, "--profile-dir", dir, url)
	if strings.Contains(r.Stdout, "no rate that was tried") {
		t.Skip("this machine is too busy for 100 requests a second")
	}
	if r.Code != exitOK || !strings.Contains(r.Stdout, " requests a second:\nprofiles of "+url) {
		t.Errorf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
	if info, err := os.Stat(filepath.Join(dir, "cpu.pprof")); err != nil || info.Size() == 0 {
		t.Error(err)
	}
}

func TestBenchPages(t *testing.T) {
	url := server(t, func(http.ResponseWriter, *http.Request) {})
	for name, args := range map[string][]string{
		"Latency by percentile":     {"-n", "20"},
		"B compared with A":         {"-n", "20", "-c", "2", "--rounds", "1", "--vs", url},
		"All rates that were tried": {"-z", "100ms", "--warm-up", "0", "--find-knee", "-q", "100", "--p99", "10s"},
	} {
		r := blackbox.Run(t, append([]string{"bench", "http", "--html", "-", url}, args...)...)
		if !strings.HasPrefix(r.Stdout, "<!DOCTYPE html>") || !strings.Contains(r.Stdout, name) || !strings.HasSuffix(r.Stdout, "</html>\n") {
			t.Errorf("%v: exit %d, %s\n%.200s", args, r.Code, r.Stderr, r.Stdout)
		}
	}
}
