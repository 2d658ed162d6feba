package bench

import (
	"errors"
	"io"
	"net/http"
	"net/http/httptest"
	"net/http/pprof"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/profiles"
)

func TestProfilesOfSeveralServers(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	mux.HandleFunc("/debug/pprof/trace", pprof.Trace)
	server := httptest.NewServer(mux)
	defer server.Close()
	dir := t.TempDir()
	p := Plan{Callers: 1, Duration: 3 * time.Second, Profile: []string{server.URL, server.URL + "/debug/pprof"}, ProfileDir: dir}
	r, err := p.Run(t.Context(), serve(t, hello))
	if err != nil || len(r.Profiles) != 2 {
		t.Fatalf("%d sets, %v", len(r.Profiles), err)
	}
	address := strings.NewReplacer("http://", "", ":", "-").Replace(server.URL)
	for i, set := range r.Profiles {
		for _, profile := range set.Profiles {
			// If two CPU profiles are requested at the same time, one is refused; the same holds
			// for traces.
			if profile.Missing != "" && profile.Name != "cpu" && profile.Name != "trace" {
				t.Errorf("%+v", profile)
			}
			if want := filepath.Join(dir, []string{"1-", "2-"}[i]+address); profile.File != "" && filepath.Dir(profile.File) != want {
				t.Errorf("%s, want a file in %s", profile.File, want)
			}
		}
	}
	var text strings.Builder
	if err := r.WriteText(&text); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"\nprofiles of " + server.URL + "/debug/pprof/\n", "\n  allocs ", "\n  heap "} {
		if !strings.Contains(text.String(), want) {
			t.Errorf("no %q in\n%s", want, text.String())
		}
	}
}

func TestProfilesAreLookedForFirst(t *testing.T) {
	asked := 0
	w := serve(t, func(http.ResponseWriter, *http.Request) { asked++ })
	none := httptest.NewServer(http.NotFoundHandler())
	defer none.Close()
	p := Plan{Callers: 1, Duration: 3 * time.Second, Profile: []string{none.URL}}
	var missing *profiles.Error
	if r, err := p.Run(t.Context(), w); !errors.As(err, &missing) || r != nil || asked > 0 {
		t.Errorf("%v after %d requests", err, asked)
	}
	p.ProfileBase = filepath.Join(t.TempDir(), "none.pprof")
	if _, err := p.Run(t.Context(), w); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
	p.Duration = 2 * time.Second
	if err := p.Check(); err == nil || !strings.Contains(err.Error(), "at least 3s") {
		t.Errorf("%v", err)
	}
}

// Profiles cost the server CPU time, so they are not taken during the rounds and the search. But
// their availability is checked before.
//
// mutant: bench-profiles-in-the-rounds
func TestProfilesAreTakenAfterTheRounds(t *testing.T) {
	one := side(t, hello)
	one.Plan.Profile = []string{"http://127.0.0.1:1"}
	other := side(t, hello)
	if other.withoutProfiles().Plan.Profile != nil || one.withoutProfiles().Plan.Profile != nil || one.Plan.Profile == nil {
		t.Error("profiles were taken in the rounds, or a side has lost them")
	}
	var missing *profiles.Error
	for _, sides := range [][2]Side{{one, other}, {other, one}} {
		c, err := Compare(t.Context(), sides[0], sides[1], CompareOptions{Rounds: 1, Progress: io.Discard})
		if !errors.As(err, &missing) || len(c.Rounds) > 0 {
			t.Errorf("%v after %d runs", err, len(c.Rounds))
		}
	}
	if k, err := FindKnee(t.Context(), one, KneeOptions{P99: time.Second, From: 10, To: 10}); !errors.As(err, &missing) || k != nil {
		t.Errorf("%v, %+v", err, k)
	}
}

func TestProfilesOfTheKnee(t *testing.T) {
	mux := http.NewServeMux()
	mux.HandleFunc("/debug/pprof/", pprof.Index)
	mux.HandleFunc("/debug/pprof/profile", pprof.Profile)
	server := httptest.NewServer(mux)
	defer server.Close()
	one := side(t, hello)
	one.Plan.Profile, one.Plan.ProfileDir = []string{server.URL}, t.TempDir()
	none := &Knee{}
	if err := none.takeProfiles(t.Context(), one, nil); err != nil || none.Profiled != nil {
		t.Errorf("%v, %+v without a rate", err, none.Profiled)
	}
	k := &Knee{Rate: 50, P99: 1e6, Points: []*Report{pageReport()}}
	if err := k.takeProfiles(t.Context(), one, nil); err != nil || k.Profiled == nil || k.Profiled.Plan.Rate != 50 || len(k.Profiled.Profiles) != 1 {
		t.Fatalf("%v, %+v", err, k.Profiled)
	}
	var text strings.Builder
	if err := k.WriteText(&text); err != nil || !strings.Contains(text.String(), "at 50.0 requests a second:\nprofiles of "+server.URL) {
		t.Errorf("%v in\n%s", err, text.String())
	}
}

// Profiles that cannot be written make a report partial.
func TestProfilesThatCannotBeWritten(t *testing.T) {
	file := filepath.Join(t.TempDir(), "file")
	if err := os.WriteFile(file, nil, 0o600); err != nil {
		t.Fatal(err)
	}
	server := httptest.NewServer(http.HandlerFunc(pprof.Index))
	defer server.Close()
	p := Plan{Callers: 1, Total: 10, Duration: 3 * time.Second, Profile: []string{server.URL}, ProfileDir: filepath.Join(file, "below")}
	if r, err := p.Run(t.Context(), serve(t, hello)); err == nil || r == nil || !strings.Contains(r.Partial, "save the profiles: ") {
		t.Errorf("%v, %+v", err, r)
	}
}

func TestAmounts(t *testing.T) {
	for want, got := range map[string]string{
		"1.50 s": amount(1_500_000_000, "nanoseconds"), "2.00 KiB": amount(2048, "bytes"), "1,234": amount(1234, "count"), "-2.00 KiB": amount(-2048, "bytes"),
		"0": amount(0, "bytes"), "linux.Syscall6": shortName("internal/runtime/linux.Syscall6"), "a/b.go:7 p.(*T[a/b.C]).M": shortName("a/b.go:7 host/p.(*T[a/b.C]).M"), "main.f": shortName("main.f"),
		"10.0.0.1-6060": fileName("http://10.0.0.1:6060/debug/pprof/"), "process-12": fileName("process 12"), "---1--80": fileName("https://[::1]:80"),
	} {
		if got != want {
			t.Errorf("%s, want %s", got, want)
		}
	}
	p := &profiles.Profile{Name: "mutex", Tables: []profiles.Table{{Type: "delay", Unit: "nanoseconds"}}}
	if got := content(p); got != "empty; a program enables it with runtime.SetMutexProfileFraction" {
		t.Errorf("%q", got)
	}
}
