package main

import (
	"bytes"
	"io"
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/google/pprof/profile"

	"github.com/slipstream-go/slipstream/bench/internal/command"
	"github.com/slipstream-go/slipstream/bench/internal/redisclusters"
	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/bench/internal/redisloadtest"
	"github.com/slipstream-go/slipstream/internal/load"
)

func quick(t *testing.T) *harness {
	t.Helper()
	h := newHarness(t.TempDir(), options{Flags: command.Flags{Quick: true}})
	t.Cleanup(func() {
		if err := h.stage.Close(); err != nil {
			t.Error(err)
		}
	})
	return h
}

// Every subject answers right over a cluster.
func TestClientsAnswerRight(t *testing.T) {
	c, err := redisclusters.Start(t.Context(), t.TempDir(), masters)
	if err != nil {
		t.Fatal(err)
	}
	defer func() {
		if err := c.Stop(); err != nil {
			t.Error(err)
		}
	}()
	for _, k := range redisload.Kinds() {
		t.Run(k.Name, func(t *testing.T) {
			with := redisload.Setting{Cluster: c.Addresses(), Callers: 16}
			if !k.Clustered() {
				if _, err := k.Open(t.Context(), with); err == nil {
					t.Error("a client without support for clusters was opened")
				}
				return
			}
			redisloadtest.Exercise(t, k, with, 1000)
		})
	}
}

// One complete window of one subject has all figures. The requests go to all masters, and every
// reply belongs to its key; others are errors.
func TestWindowsHaveAllFigures(t *testing.T) {
	h := quick(t)
	for _, sc := range h.Scenarios() {
		if sc.Name != "closed/16" && sc.Name != "rate/5k" {
			continue
		}
		for _, subject := range sc.Subjects {
			if subject.Name != "rueidis" && subject.Name != load.Ours && subject.Name != single {
				continue
			}
			sample, err := subject.Run(t.Context(), 1)
			if err != nil {
				t.Fatal(err)
			}
			if sample.Errors != 0 {
				t.Errorf("%s: %s: %d errors: %s", sc.Name, subject.Name, sample.Errors, sample.ErrorSample)
			}
			for _, m := range []load.Metric{load.RPS, load.ClientUS, load.ServerUS, load.P50US, load.P99US, load.PerRead} {
				if !(sample.Values[m] > 0) {
					t.Errorf("%s: %s: %s is %v", sc.Name, subject.Name, m, sample.Values[m])
				}
			}
			d := sample.Details.(redisload.Details)
			if requests := sample.Values[load.RPS] * quickWindow.Seconds(); d.Servers.Commands < requests/2 {
				t.Errorf("%s: %s: the servers count %v commands of about %v", sc.Name, subject.Name, d.Servers.Commands, requests)
			}
		}
	}
	if h.asked[load.Ours] == nil || h.asked[load.Ours].moved > 0 {
		t.Errorf("ours sent %+v; want no redirections", h.asked[load.Ours])
	}
}

// Programs read the names, and the goals belong to the scenarios.
func TestScenarios(t *testing.T) {
	names := map[string]bool{}
	for _, sc := range quick(t).Scenarios() {
		names[sc.Name] = true
		if sc.Name == topology {
			continue
		}
		if len(sc.Goals) != 2 || sc.Close == nil {
			t.Errorf("%s: %d goals, closes: %t", sc.Name, len(sc.Goals), sc.Close != nil)
		}
		subjects := map[string]bool{}
		for _, s := range sc.Subjects {
			subjects[s.Name] = true
			if s.Variant != (s.Name == single) {
				t.Errorf("%s: %s is a variant: %t", sc.Name, s.Name, s.Variant)
			}
		}
		for _, name := range []string{"go-redis-pool", "go-redis-ap-half", "go-redis-ap-full", "rueidis", "redispipe", "radix", load.Ours, load.Control, single} {
			if !subjects[name] {
				t.Errorf("%s: no subject %s", sc.Name, name)
			}
		}
		if subjects["redigo"] || subjects["pascaldekloe"] {
			t.Errorf("%s has clients without support for clusters", sc.Name)
		}
	}
	for _, name := range []string{"closed/16", "closed/128", "closed/1024", "closed/8192", "rate/5k", "rate/20k", "rate/80k", "rate/160k", topology} {
		if !names[name] {
			t.Errorf("no scenario %s", name)
		}
	}
}

func TestCheck(t *testing.T) {
	row := func(subject string, client float64) load.Row {
		return load.Row{Scenario: "closed/128", Subject: subject, ClientUS: &client}
	}
	rows := []load.Row{row(load.Ours, 3), row(single, 2), row("rueidis", 4), row("redispipe-150us", 5)}
	for i, perRead := range []float64{4, 12, 3, 9} {
		rows[i].PerRead = &perRead
	}
	h := quick(t)
	h.asked[load.Ours] = &questions{seconds: 4, topology: 1}
	h.asked["radix"] = &questions{moved: 7}
	var out bytes.Buffer
	if err := h.Check(&out, rows); err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		"closed/128: per_read >= that of rueidis, the best rival that never waits: met (4.00 and 3.00)",
		"closed/128: client_us of ours is 1.50 of that over one server (3.00 and 2.00)",
		"slipstream: 0 redirections in all windows, 0.050 requests for the topology a second and client in the 4 s of topology/5k\n",
		"radix: 7 redirections in all windows\n",
	} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	rows[2].Errors = 3
	if err := h.Check(io.Discard, rows); err == nil || !strings.Contains(err.Error(), "3 requests failed") {
		t.Errorf("error %v", err)
	}
}

func TestFlags(t *testing.T) {
	t.Setenv("SCENARIO", "")
	for _, c := range []struct {
		args []string
		want string // scenario; if empty, refused
	}{
		{[]string{"-profile", "slipstream", "closed/1024"}, "closed/1024"},
		{[]string{"-scenario", "closed/"}, "closed/"},
		{[]string{"-profile", "slipstream"}, ""},
		{[]string{"closed/1024"}, ""},
	} {
		f, err := suite().Parse(c.args, io.Discard)
		if (err == nil) != (c.want != "") || err == nil && f.Scenario != c.want {
			t.Errorf("%q: scenario %q, %v; want %q", c.args, f.Scenario, err, c.want)
		}
	}
}

// A profile describes the requested process, and its table shows the cost of routing.
func TestProfile(t *testing.T) {
	h := quick(t)
	h.options.profile, h.options.Scenario = load.Ours, "closed/128"
	h.options.Duration = profileWindow / 4
	h.options.out = filepath.Join(t.TempDir(), "x.pprof")
	var out strings.Builder
	if err := h.profile(t.Context(), &out); err != nil {
		t.Fatal(err)
	}
	for _, want := range []string{"slipstream in closed/128: ", "| ours: engine | ", "routing <= 3 % of the CPU time without the generator's: "} {
		if !strings.Contains(out.String(), want) {
			t.Errorf("no %q in\n%s", want, &out)
		}
	}
	file, err := os.Open(h.options.out)
	if err != nil {
		t.Fatal(err)
	}
	defer file.Close()
	if _, err := profile.Parse(file); err != nil {
		t.Error(err)
	}
	h.options.profile = "nobody"
	if err := h.profile(t.Context(), io.Discard); err == nil {
		t.Error("no subject has a profile")
	}
}

// Finding the node of a call is routing, whatever calls it; its allocations are not.
func TestParts(t *testing.T) {
	for _, c := range []struct{ stack, want string }{
		{"github.com/slipstream-go/slipstream/redis/internal/slot.checksum github.com/slipstream-go/slipstream/redis.(*router).routeKey", routing},
		{"github.com/slipstream-go/slipstream/redis/internal/cluster.(*Table[go.shape.*uint8]).Route github.com/slipstream-go/slipstream/redis.(*Client).Get", routing},
		{"runtime.memequal github.com/slipstream-go/slipstream/redis.(*router).owner", routing},
		{"github.com/slipstream-go/slipstream/internal/pipe.(*Engine).Do github.com/slipstream-go/slipstream/redis.(*Client).run main.(*caller).Do", "ours: engine"},
		{"github.com/slipstream-go/slipstream/redis.(*Client).run", "ours: the rest"},
		{"github.com/slipstream-go/slipstream/internal/load.(*Histogram).Record", generator},
		{"github.com/slipstream-go/slipstream/bench/internal/redisload.(*caller).Do", generator},
		{"syscall.write internal/poll.(*FD).Write", "kernel: write to a socket"},
	} {
		if got := parts.Of(strings.Fields(c.stack)); got != c.want {
			t.Errorf("%s is %q, want %q", c.stack, got, c.want)
		}
	}
}
