package main

import (
	"strings"
	"testing"
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
	file := writeFile(t, "slipstream.yaml", text)
	r := expect(t, exitOK, "1 of 3 listeners can be reached from other machines", "", "config", "check", "-c", file, "--exposed")
	for _, want := range []string{"http 0.0.0.0:8443\n", "1.2 and later", "API keys of keys.txt", "open resources  depts\n", "every name", "/openapi.json", "17000 connections"} {
		if !strings.Contains(r.stdout, want) {
			t.Errorf("the table has no %q:\n%s", want, r.stdout)
		}
	}
	for _, not := range []string{"8080", "9100", "orders"} {
		if strings.Contains(r.stdout, not) {
			t.Errorf("the table has %s:\n%s", not, r.stdout)
		}
	}
	file = writeFile(t, "remote.yaml", text+"admin: { address: \":9100\", allow_remote: true }\n")
	if r = expect(t, exitOK, "2 of 3 listeners", "", "config", "check", "-c", file, "--exposed"); !strings.Contains(r.stdout, "admin :9100\n") || !strings.Contains(r.stdout, "purge") {
		t.Errorf("the table does not show the admin listener:\n%s", r.stdout)
	}
	expect(t, exitUsage, "", "exposed", "config", "check", "-c", file, "--exposed", "--against", "http://127.0.0.1:1")
	expect(t, exitUsage, "", "expected", "config", "check", "-c", writeFile(t, "bad.yaml", "origin: 5\n"), "--exposed")
}
