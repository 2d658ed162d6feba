package main

import (
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
)

// TestConfigExposed: the table names what other machines can reach, and nothing else.
func TestConfigExposed(t *testing.T) {
	const text = `origin: { url: sqlite:shop.db }
resources:
  depts: { table: dept, key: [deptno] }
  orders: { table: orders, key: [id], access: { keys: [web] } }
auth: { keys: keys.txt }
frontends:
  http: [ "127.0.0.1:8080", { address: "0.0.0.0:8443", tls: { cert: c.pem, key: k.pem } } ]
`
	file := blackbox.WriteFile(t, "slipstream.yaml", text)
	r := blackbox.Expect(t, exitOK, "1 of 3 listeners can be reached from other machines", "", "config", "check", "-c", file, "--exposed")
	for _, want := range []string{"http 0.0.0.0:8443\n", "1.2 and later", "API keys of keys.txt", "open resources  depts\n", "every name", "/openapi.json", "17000 connections"} {
		if !strings.Contains(r.Stdout, want) {
			t.Errorf("the table has no %q:\n%s", want, r.Stdout)
		}
	}
	for _, not := range []string{"8080", "9100", "orders"} {
		if strings.Contains(r.Stdout, not) {
			t.Errorf("the table must not have %s:\n%s", not, r.Stdout)
		}
	}
	file = blackbox.WriteFile(t, "remote.yaml", text+"admin: { address: \":9100\", allow_remote: true }\n")
	if r = blackbox.Expect(t, exitOK, "2 of 3 listeners", "", "config", "check", "-c", file, "--exposed"); !strings.Contains(r.Stdout, "admin :9100\n") || !strings.Contains(r.Stdout, "purge") {
		t.Errorf("the table does not show the admin listener:\n%s", r.Stdout)
	}
	blackbox.Expect(t, exitUsage, "", "exposed", "config", "check", "-c", file, "--exposed", "--against", "http://127.0.0.1:1")
	blackbox.Expect(t, exitUsage, "", "expected", "config", "check", "-c", blackbox.WriteFile(t, "bad.yaml", "origin: 5\n"), "--exposed")
}
