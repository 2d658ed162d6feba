package config

import (
	"path/filepath"
	"strings"
	"testing"
)

func TestHandoverPath(t *testing.T) {
	const file = "origin: { url: \"sqlite:shop.db\" }\nresources: { a: { table: a, key: [a] } }\n"
	for _, c := range []struct{ text, dir, want string }{
		{"", "/etc/slipstream", ""},
		{"handover: run/s.sock", "/etc/slipstream", "/etc/slipstream/run/s.sock"},
		{"handover: run/s.sock", "", "run/s.sock"},
		{"handover: /run/slipstream/handover.sock", "/etc/slipstream", "/run/slipstream/handover.sock"},
	} {
		got, err := Parse("test", []byte(file+c.text))
		if err != nil {
			t.Errorf("%q: %v", c.text, err)
			continue
		}
		got.Origin.Dir = filepath.FromSlash(c.dir)
		if path := filepath.ToSlash(got.Path(got.Handover)); path != c.want {
			t.Errorf("%q in %q: %q, want %q", c.text, c.dir, path, c.want)
		}
		if again, err := Parse("again", got.Marshal()); err != nil || again.Handover != got.Handover {
			t.Errorf("%q written and read: %v, %v", c.text, again, err)
		}
	}
	for _, text := range []string{"handover: run/", `handover: ""`, "handover: [a]"} {
		if _, err := Parse("test", []byte(file+text)); err == nil || !strings.Contains(err.Error(), "such as run/handover.sock") {
			t.Errorf("%q: %v, want what is expected", text, err)
		}
	}
}
