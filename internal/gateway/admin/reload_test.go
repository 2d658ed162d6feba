package admin

import (
	"context"
	"strings"
	"testing"
)

// reloads counts the reloads that were requested.
type reloads struct{ wet, dry int }

func (r *reloads) Reload(_ context.Context, dry bool) Reload {
	if dry {
		r.dry++
		return Reload{Status: 200, Changes: []Change{{Key: "freshness", Old: "1s", New: "2s", Effect: "reload"}}}
	}
	r.wet++
	return Reload{Status: 422, Error: "wrong", Mistakes: []Mistake{{Line: 3, Column: 7, Message: "m"}}}
}

func TestReloadPage(t *testing.T) {
	r := &reloads{}
	s := New(Config{Reloader: r})
	for _, c := range []struct {
		method, target string
		status         int
		body           string
		header         []string
	}{
		{"GET", "/reload", 200, `"reloaded":false,"changes":[{"key":"freshness","old":"1s","new":"2s","effect":"reload"}]`, nil},
		{"HEAD", "/reload", 200, "", nil},
		{"POST", "/reload", 422, `"changes":[],"error":"wrong","mistakes":[{"line":3,"column":7,"message":"m"}]`, nil},
		{"POST", "/reload", 422, "", []string{"Origin", "http://127.0.0.1:9100", "Sec-Fetch-Site", "same-origin"}},
		{"POST", "/reload?file=other.yaml", 400, "no parameters", nil},
		{"PUT", "/reload", 405, "expected POST", nil},
		{"DELETE", "/reload", 405, "", nil},
		{"POST", "http://attacker.example/reload", 421, "", nil},
		{"POST", "/reload", 403, "another origin", []string{"Origin", "http://attacker.example"}},
		{"POST", "/reload", 403, "another origin", []string{"Sec-Fetch-Site", "cross-site"}},
		{"GET", "/reload", 403, "another origin", []string{"Sec-Fetch-Site", "cross-site", "Sec-Fetch-Mode", "no-cors"}},
	} {
		w := ask(s, c.method, c.target, c.header...)
		if w.Code != c.status || !strings.Contains(w.Body.String(), c.body) {
			t.Errorf("%s %s %v: %d %s, want %d with %s", c.method, c.target, c.header, w.Code, w.Body, c.status, c.body)
		}
	}
	if r.dry != 2 || r.wet != 2 {
		t.Errorf("%d times dry and %d times not, want 2 and 2", r.dry, r.wet)
	}
	if w := ask(New(Config{}), "POST", "/reload"); w.Code != 404 {
		t.Errorf("without a file: %d, want 404", w.Code)
	}
}
