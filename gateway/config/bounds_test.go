package config

import (
	"fmt"
	"strings"
	"testing"
)

// TestBoundsOfTheFile: what is as large as allowed is accepted, and one more is refused.
func TestBoundsOfTheFile(t *testing.T) {
	const head = "origin: { url: sqlite:shop.db }\n"
	const one = "resources: { depts: { table: dept, key: [deptno] } }\n"
	users := func(n int) string {
		var b strings.Builder
		b.WriteString(head + one + "frontends: { redis: \"127.0.0.1:6379\" }\nredis:\n  users:\n")
		for i := range n {
			fmt.Fprintf(&b, "    u%d: \"sha256:%064x\"\n", i, i)
		}
		return b.String()
	}
	url := func(n int) string {
		const start = "postgres://app@db/shop?application_name="
		return `origin: { url: "` + start + strings.Repeat("x", n-len(start)) + "\" }\n" + one
	}
	statement := func(n int) string {
		return "origin: { url: \"postgres://app@db/shop\" }\nresources:\n  depts:\n    sql: \"" + strings.Repeat("x", n) + "\"\n"
	}
	hosts := func(n int) string {
		var b strings.Builder
		b.WriteString(head + one + "http:\n  hosts:\n")
		for i := range n {
			fmt.Fprintf(&b, "    - h%d.example\n", i)
		}
		return b.String()
	}
	for _, test := range []struct {
		name string
		text func(n int) string
		most int
		want string
	}{
		{"users of Redis", users, maxUsers, "redis.users"},
		{"connection URL", url, maxURL, "origin.url"},
		{"statement", statement, maxStatement, "resources.depts.sql"},
		{"names in Host", hosts, maxHosts, "http.hosts"},
	} {
		said := func(n int) string {
			if _, err := Parse("bounds.yaml", []byte(test.text(n))); err != nil {
				return err.Error()
			}
			return ""
		}
		if text := said(test.most); strings.Contains(text, test.want+":") {
			t.Errorf("%s: %d are refused: %.300s", test.name, test.most, text)
		}
		if text := said(test.most + 1); !strings.Contains(text, test.want+":") {
			t.Errorf("%s: with %d the error is %.300q, want a refusal of %s", test.name, test.most+1, text, test.want)
		}
	}
}
