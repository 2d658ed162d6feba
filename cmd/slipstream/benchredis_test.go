package main

import (
	"fmt"
	"os"
	"path/filepath"
	"regexp"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

func TestBenchRedis(t *testing.T) {
	const password = "open-sesame"
	server := testkit.StartRedis(t)
	client, err := redis.Connect(t.Context(), redis.Options{Addr: server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Do(t.Context(), nil, redis.Cmd("CONFIG", "SET", "requirepass", password)); err != nil {
		t.Fatal(err)
	}
	file := blackbox.WriteFile(t, "password", password+"\n")
	few := []string{"redis", "-c", "4", "-n", "400", "--keys", "100"}
	for _, how := range [][]string{
		{"-a", password, server.Addr},
		{"--password-file", file, server.Addr},
		{"redis://:" + password + "@" + server.Addr},
	} {
		r := runBench(t, append(few, how...)...)
		if r.Code != exitOK || !strings.Contains(r.Stdout, "requests  400 completed, 0 failed") || !strings.Contains(r.Stdout, "Redis, by INFO") || strings.Contains(r.Stdout+r.Stderr, "sesame") {
			t.Errorf("%v: exit %d\n%s%s", how, r.Code, r.Stdout, r.Stderr)
		}
	}
	more := append(few, "-a", password)
	expectBench(t, exitOK, "0 of them wrong, 0 stale; 0 misses", "", append(more, "--fill", "--ratio", "0:1", server.Addr)...)
	expectBench(t, exitOK, "400 replies", "", append(more, server.Addr, "INCRBY", "n:__key__", "5")...)
	expectBench(t, exitOK, "4 callers with 16 requests at once", "", append(more, "-P", "16", server.Addr, "--", "LRANGE", "list", "0", "-1")...)
	expectBench(t, exitFailure, "8 error ERR", "no request got a correct answer: error ERR", append(more, "-n", "8", server.Addr, "INCR", "__key__")...)
	mix := blackbox.WriteFile(t, "mix.json", `{"operations": [{"weight": 2, "command": ["GET", "__key__"]}, {"command": ["INCR", "__key__"], "name": "wrong type"}]}`)
	expectBench(t, exitFailure, "\nwrong type  ", "of the requests failed", append(more, "--fill", "--mix", mix, server.Addr)...)
	expectBench(t, exitFailure, "GET and wrong type, 2 to 1, at redis://", "of the requests failed", append(more, "-P", "8", "--mix", mix, server.Addr)...)
	expectBench(t, exitUnreachable, "", "NOAUTH", "redis", server.Addr)
	expectBench(t, exitUnreachable, "", "WRONGPASS", "redis", "-a", "barley", server.Addr)
}

// If a cluster on this machine announces a node on another one, nothing is sent there without
// --yes.
func TestBenchStaysOnThisMachine(t *testing.T) {
	server := testkit.StartRedis(t, "--cluster-enabled", "yes", "--cluster-announce-ip", "192.0.2.7",
		"--cluster-port", strconv.Itoa(testkit.FreePort(t)), "--cluster-config-file", t.TempDir()+"/nodes.conf")
	client, err := redis.Connect(t.Context(), redis.Options{Addr: server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	defer client.Close()
	if err := client.Do(t.Context(), nil, redis.Cmd("CLUSTER", "ADDSLOTSRANGE", "0", "16383")); err != nil {
		t.Fatal(err)
	}
	testkit.Eventually(t, 20*time.Second, func() error {
		var info string
		if err := client.Do(t.Context(), &info, redis.Cmd("CLUSTER", "INFO")); err != nil || !strings.Contains(info, "cluster_state:ok") {
			return fmt.Errorf("%v, %s", err, info)
		}
		return nil
	})
	expectBench(t, exitUnreachable, "", "not on this machine; expected --yes", "redis", "--cluster", "-c", "1", "-n", "10", "-t", "2s", server.Addr)
}

// The cluster requires TLS and a password.
func TestBenchRedisCluster(t *testing.T) {
	const password = "open-sesame"
	cluster := rediscluster.Start(t, rediscluster.Options{Password: password, TLS: true})
	args := []string{"redis", "--cluster", "-c", "8", "-n", "1000", "--keys", "300", "--fill", "--ratio", "1:1", "-a", password, "--tls", "--cacert", cluster.AuthorityFile(), cluster.Addrs()[0]}
	r := runBench(t, args...)
	if r.Code != exitOK || !strings.Contains(r.Stdout, "requests  1,000 completed, 0 failed") || !strings.Contains(r.Stdout, "0 of them wrong, 0 stale; 0 misses") || !strings.Contains(r.Stdout, "Redis, by INFO") {
		t.Errorf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}

// Every flag of ours that docs/bench-flags.md names exists.
func TestFlagsOfOtherProgramsHaveOurs(t *testing.T) {
	text, err := os.ReadFile(filepath.FromSlash("../../docs/bench-flags.md"))
	if err != nil {
		t.Fatal(err)
	}
	flags := program{}.benchRedis().Flags()
	named := 0
	for line := range strings.Lines(string(text)) {
		columns := strings.Split(line, "|")
		if len(columns) != 4 {
			continue
		}
		for _, code := range regexp.MustCompile("`(-[^`]*)`").FindAllStringSubmatch(columns[2], -1) {
			flag, _, _ := strings.Cut(code[1], " ")
			if flag == "--" { // before a command
				continue
			}
			named++
			if long, ok := strings.CutPrefix(flag, "--"); ok && flags.Lookup(long) == nil || !ok && flags.ShorthandLookup(flag[1:]) == nil {
				t.Errorf("slipstream bench redis has no flag %s", flag)
			}
		}
	}
	if named < 50 {
		t.Errorf("%d flags in the page", named)
	}
}

func TestBenchRedisUsageErrors(t *testing.T) {
	for _, test := range []struct {
		args   []string
		stderr string
	}{
		{nil, "requires at least 1 arg"},
		{[]string{"192.0.2.1:6379"}, "redis://192.0.2.1:6379 is not on this machine; expected --yes"},
		{[]string{"http://127.0.0.1"}, "not redis, rediss or unix"},
		{[]string{"--ratio", "all", "127.0.0.1"}, "expected one such as 1:10"},
		{[]string{"--key-dist", "even", "127.0.0.1"}, "expected uniform, zipf or sequential"},
		{[]string{"-d", "3", "127.0.0.1"}, "values of 3 bytes"},
		{[]string{"-P", "0", "127.0.0.1"}, "-P 0; expected at least 1"},
		{[]string{"--user", "app", "127.0.0.1"}, `user "app" without a password`},
		{[]string{"--insecure", "127.0.0.1"}, "expected --tls or rediss://"},
		{[]string{"--tls", "--cacert", "none.pem", "127.0.0.1"}, "none.pem"},
		{[]string{"--protocol", "4", "127.0.0.1"}, "protocol 4"},
	} {
		blackbox.Expect(t, exitUsage, "", test.stderr, append([]string{"bench", "redis"}, test.args...)...)
	}
}
