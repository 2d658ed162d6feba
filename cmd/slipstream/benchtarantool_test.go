package main

import (
	"strconv"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

func TestBenchTarantool(t *testing.T) {
	const password = "open-sesame"
	server := testkit.StartTarantool(t, `
		function sum(a, b) return a + b end
		box.schema.user.create('app', {password = '`+password+`'})
		box.schema.user.grant('app', 'super')`)
	file := blackbox.WriteFile(t, "password", password+"\n")
	few := []string{"tarantool", "-c", "4", "-n", "400", "--keys", "100", "--create"}
	for _, how := range [][]string{
		{server.Addr},
		{"--user", "app", "-a", password, server.Addr},
		{"--user", "app", "--password-file", file, server.Addr},
		{"tarantool://app:" + password + "@" + server.Addr},
	} {
		r := runBench(t, append(few, how...)...)
		if r.Code != exitOK || !strings.Contains(r.Stdout, "requests  400 completed, 0 failed") || !strings.Contains(r.Stdout, "Tarantool, by clock.proc") || strings.Contains(r.Stdout+r.Stderr, "sesame") {
			t.Errorf("%v: exit %d\n%s%s", how, r.Code, r.Stdout, r.Stderr)
		}
	}
	expectBench(t, exitOK, "0 of them wrong, 0 stale; 0 misses", "", append(few, "--fill", "--ratio", "0:1", server.Addr)...)
	expectBench(t, exitOK, "call sum at tarantool://"+server.Addr, "", append(few, server.Addr, "call", "sum", "1", "2")...)
	expectBench(t, exitFailure, "400 error PROC_LUA", "no request got a correct answer: error PROC_LUA", append(few, server.Addr, "call", "sum", "1", "x")...)
	expectBench(t, exitFailure, "", `the space "none": it does not exist; expected --create`, "tarantool", "--space", "none", server.Addr)
	expectBench(t, exitUnreachable, "", "is Tarantool listening there", "tarantool", "--user", "app", "-a", "barley", server.Addr)
	expectBench(t, exitUnreachable, "", "connection refused", "tarantool", "127.0.0.1:"+strconv.Itoa(testkit.FreePort(t)))

	mix := blackbox.WriteFile(t, "mix.json", `{"operations": [
		{"weight": 3, "command": ["select"]},
		{"weight": 2, "command": ["replace"]},
		{"command": ["call", "sum", "1", "2"], "name": "adding up"}
	]}`)
	r := runBench(t, append(few, "--mix", mix, server.Addr)...)
	if r.Code != exitOK || !strings.Contains(r.Stdout, "select, replace and adding up, 3 to 2 to 1, at tarantool://") || !strings.Contains(r.Stdout, "\nadding up ") {
		t.Errorf("exit %d\n%s%s", r.Code, r.Stdout, r.Stderr)
	}
}

func TestBenchTarantoolUsageErrors(t *testing.T) {
	mix := blackbox.WriteFile(t, "mix.json", "{\"operations\": [\n  {\"command\": [\"get\"]}]}")
	for _, test := range []struct {
		args   []string
		stderr string
	}{
		{nil, "requires at least 1 arg"},
		{[]string{"192.0.2.1:3301"}, "tarantool://192.0.2.1:3301 is not on this machine; expected --yes"},
		{[]string{"http://127.0.0.1"}, "tarantool"},
		{[]string{"--ratio", "all", "127.0.0.1"}, "expected one such as 1:10"},
		{[]string{"--ratio", "0:0", "127.0.0.1"}, "expected one such as 1:10"},
		{[]string{"--key-dist", "even", "127.0.0.1"}, "expected uniform, zipf or sequential"},
		{[]string{"-d", "3", "127.0.0.1"}, "values of 3 bytes"},
		{[]string{"--sockets", "0", "127.0.0.1"}, "--sockets 0"},
		{[]string{"--user", "app", "127.0.0.1"}, `user "app" without a password`},
		{[]string{"--insecure", "127.0.0.1"}, "expected --tls or tarantool+tls://"},
		{[]string{"127.0.0.1", "get"}, `operation "get"; expected select, replace, call or eval`},
		{[]string{"--mix", mix, "127.0.0.1"}, mix + `:2:15: operation "get"`},
		{[]string{"--mix", mix, "127.0.0.1", "select"}, "both --mix and a command"},
		{[]string{"--mix", mix, "--ratio", "1:1", "127.0.0.1"}, "none of the others can be"},
		{[]string{"--mix", "none.json", "127.0.0.1"}, "none.json"},
	} {
		blackbox.Expect(t, exitUsage, "", test.stderr, append([]string{"bench", "tarantool"}, test.args...)...)
	}
}
