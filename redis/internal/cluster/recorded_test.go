package cluster

import (
	"os"
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// A recording is a recorded reply of a real server: see testdata/recorded.txt.
type recording struct {
	server, scenario string
	protocol         int
	command          string // words joined by _
	frame            []byte
}

func allRecordings(t testing.TB) (all []recording) {
	t.Helper()
	text, err := os.ReadFile("testdata/recorded.txt")
	if err != nil {
		t.Fatal(err)
	}
	for line := range strings.Lines(string(text)) {
		if strings.HasPrefix(line, "#") || strings.TrimSpace(line) == "" {
			continue
		}
		words := strings.SplitN(strings.TrimSpace(line), " ", 5)
		protocol, err := strconv.Atoi(words[2])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		frame, err := strconv.Unquote(words[4])
		if err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		all = append(all, recording{words[0], words[1], protocol, words[3], []byte(frame)})
	}
	return all
}

// recordings returns the recorded replies to a command.
func recordings(f *testing.F, c Command) (frames [][]byte) {
	for _, r := range allRecordings(f) {
		if r.command == strings.ReplaceAll(c.String(), " ", "_") {
			frames = append(frames, r.frame)
		}
	}
	return frames
}

// TestRecordedTopologies checks what each command of each server says about each scenario.
func TestRecordedTopologies(t *testing.T) {
	const (
		loopback = "127.0.0.1:"
		masters  = "7001; 7002; 7003; "
		halves   = "0-8191 7001; 8192-16383 7002"
		failed   = "7001 fail; 7002; 7003; 7004; 0-5460 7004; 5461-10922 7002; 10923-16383 7003"
	)
	whole := masters + "7004 of 7001; 0-5460 7001; 5461-10922 7002; 10923-16383 7003"
	want := map[string]map[string]string{
		"alone":              {"": "7001", "SLOTS": "reply to CLUSTER SLOTS: no node with a usable address, expected at least one"},
		"whole":              {"": whole},
		"moving":             {"": whole},
		"moving-in":          {"": whole},
		"failed-over":        {"": failed, "NODES": strings.Replace(failed, " fail", " fail disconnected", 1), "SLOTS": strings.Replace(failed, "7001 fail; ", "", 1)},
		"master-failed":      {"": strings.Replace(failed, "7003;", "7003 fail;", 1), "NODES": strings.NewReplacer("7001 fail", "7001 fail disconnected", "7003;", "7003 fail disconnected;").Replace(failed), "SLOTS": strings.Replace(failed, "7001 fail; ", "", 1)},
		"hostname":           {"": "7002; r7001.example.com:7001; 0-8191 r7001.example.com:7001; 8192-16383 7002", "NODES": "7001; 7002; " + halves},
		"unknown-endpoint":   {"": "7001; 7002; " + halves},
		"ipv6":               {"": "[::1]:7001; [::1]:7002; 0-8191 [::1]:7001; 8192-16383 [::1]:7002"},
		"redis-8.0 no slots": {"": "7001 fail; 7002; 7003 fail; 7004; 0-5460 7004; 5461-10922 7002"},
	}
	seen := make(map[string]int)
	for _, r := range allRecordings(t) {
		words := strings.Split(r.command, "_")
		if words[0] != "CLUSTER" || words[1] == "INFO" {
			continue
		}
		asked := loopback + "7001"
		switch {
		case r.scenario == "ipv6":
			asked = "[::1]:7001"
		case strings.HasPrefix(r.scenario, "moving"), r.scenario == "whole":
			asked = loopback + "7002"
		}
		var replies Replies
		for _, c := range []Command{Shards, Nodes, SlotRanges} {
			if c.Args()[1] == words[1] {
				replies[c] = r.frame
			}
		}
		scenario := want[r.scenario]
		if r.server == "redis-8.0" && r.scenario == "master-failed" && words[1] == "SHARDS" {
			scenario = want["redis-8.0 no slots"] // it omits them; CLUSTER NODES does not
		}
		expected, special := scenario[words[1]]
		if !special {
			expected = scenario[""]
		}
		topology, err := Parse(asked, &Addresses{}, replies)
		got := ""
		if err != nil {
			got = err.Error()
		} else {
			got = strings.ReplaceAll(describe(topology), loopback, "")
			if doubt := topology.Doubt != ""; doubt != (words[1] == "SHARDS" && topology.Covered() < slot.Count) {
				t.Errorf("%s, %s, %s: doubt %q", r.server, r.scenario, r.command, topology.Doubt)
			}
		}
		if got != expected {
			t.Errorf("%s, %s, %s in RESP%d: %s\nexpected %s", r.server, r.scenario, r.command, r.protocol, got, expected)
		}
		seen[r.scenario]++
	}
	if len(seen) != len(want)-1 || seen["whole"] != 12 {
		t.Errorf("recordings of %v", seen)
	}
}

func TestRecordedInformation(t *testing.T) {
	seen := 0
	for _, r := range allRecordings(t) {
		if r.command != "CLUSTER_INFO" {
			continue
		}
		seen++
		info, err := parseInfo(r.frame)
		want := map[string]information{"alone": {Down, 0}, "whole": {Up, 4}, "master-failed": {Up, 5}}[r.scenario]
		if err != nil || info != want {
			t.Errorf("%s, %s: %+v, %v; expected %+v", r.server, r.scenario, info, err, want)
		}
	}
	if seen != 10 {
		t.Errorf("%d recordings", seen)
	}
}

func TestRecordedMigrations(t *testing.T) {
	for _, r := range allRecordings(t) {
		if !strings.HasPrefix(r.scenario, "moving") {
			continue
		}
		topology, err := Parse("127.0.0.1:7001", &Addresses{}, Replies{Nodes: r.frame})
		if err != nil {
			t.Fatal(err)
		}
		if want := (Moving{Slot: 15495, From: 2, To: 0}); len(topology.Moving) != 1 || topology.Moving[0] != want {
			t.Errorf("%s, %s: %v", r.server, r.scenario, topology.Moving)
		}
	}
}

func TestRecordedErrors(t *testing.T) {
	want := map[string]string{ // redirects with their address, as the node at 127.0.0.1:7001 has sent them
		"moved": "MOVED 15495 127.0.0.1:7003", "moved-read": "MOVED 15495 127.0.0.1:7003", "ask": "ASK 15495 127.0.0.1:7001",
		"crossslot": "CROSSSLOT", "tryagain": "TRYAGAIN", "unreachable": "MOVED 15495 127.0.0.1:7003", "unserved": "CLUSTERDOWN",
		"moved-hostname": "MOVED 15495 127.0.0.1:7002", "moved-other-hostname": "MOVED 3300 r7001.example.com:7001",
		"moved-unknown-endpoint": "MOVED 15495 127.0.0.1:7002", "moved-other-unknown-endpoint": "MOVED 3300 127.0.0.1:7001",
		"moved-ipv6": "MOVED 15495 [::1]:7002",
	}
	seen := make(map[string]int)
	for _, r := range allRecordings(t) {
		if strings.HasPrefix(r.command, "CLUSTER_") {
			continue
		}
		seen[r.scenario]++
		got, message, _ := strings.Cut(strings.TrimSpace(string(r.frame[1:])), " ")
		if d, err := ParseRedirect(got, message); err == nil {
			addr, err := d.Addr(&Addresses{}, "127.0.0.1:7001")
			if err != nil {
				t.Error(err)
			}
			got += " " + strconv.Itoa(int(d.Slot)) + " " + addr
		}
		if got != want[r.scenario] {
			t.Errorf("%s, %s: %s is read as %s, expected %s", r.server, r.scenario, r.frame, got, want[r.scenario])
		}
	}
	for scenario := range want {
		if seen[scenario] != 2 {
			t.Errorf("%d recordings of %s", seen[scenario], scenario)
		}
	}
}
