package access

import (
	"strings"
	"testing"

	"github.com/go-jose/go-jose/v4"
)

func TestRule(t *testing.T) {
	g, _ := newGate(t, nil)
	key := accepted(t, g, Credentials{APIKey: webKey}, "key:web")
	alice := accepted(t, g, withToken(sign(t, jose.HS256, octKey, "oct", claimSet(map[string]any{
		"roles": []string{"reader", "writer"}, "level": 3, "admin": false, "none": []string{}, "deep": map[string]any{"x": "y"}, "empty": nil,
		"long": strings.Repeat("x", 1025), "null": nil, "mixed": []any{"reader", 1},
	}))), "jwt:alice")
	claim := func(name string, values ...string) *Rule { return &Rule{Claims: map[string][]string{name: values}} }
	for _, c := range []struct {
		name               string
		rule               *Rule
		nobody, key, alice int // statuses, 0: allowed
	}{
		{"nil", nil, 0, 0, 0},
		{"empty", &Rule{}, 403, 403, 403},
		{"this key", &Rule{Keys: []string{"shop", "web"}}, 401, 0, 403},
		{"another key", &Rule{Keys: []string{"we", "webb", "WEB", "key:web", ""}}, 401, 403, 403},
		{"any key", &Rule{Keys: []string{"*"}}, 401, 0, 403},
		{"any token", &Rule{JWT: true}, 401, 403, 0},
		{"key or token", &Rule{Keys: []string{"web"}, JWT: true}, 401, 0, 0},
		{"scope", claim("scope", "depts:read"), 401, 403, 0},
		{"second scope", claim("scope", "x", "orders:read"), 401, 403, 0},
		{"part of a scope", claim("scope", "depts", "depts:read orders:read", ""), 401, 403, 403},
		{"value of a list", claim("roles", "writer"), 401, 403, 0},
		{"not in the list", claim("roles", "write"), 401, 403, 403},
		{"number", claim("level", "3"), 401, 403, 0},
		{"boolean", claim("admin", "false"), 401, 403, 0},
		{"another boolean", claim("admin", "true"), 401, 403, 403},
		{"empty list", claim("none", ""), 401, 403, 403},
		{"object", claim("deep", "y", `{"x":"y"}`), 401, 403, 403},
		{"long", claim("long", strings.Repeat("x", 1025)), 401, 403, 403},
		{"mixed list", claim("mixed", "reader"), 401, 403, 403},
		{"no such claim", claim("group", "x"), 401, 403, 403},
		{"no values", claim("scope"), 401, 403, 403},
		{"all claims", &Rule{Claims: map[string][]string{"scope": {"depts:read"}, "level": {"3"}}}, 401, 403, 0},
		{"one claim missing", &Rule{JWT: true, Claims: map[string][]string{"scope": {"depts:read"}, "level": {"4"}}}, 401, 403, 403},
		{"key or claim", &Rule{Keys: []string{"*"}, Claims: map[string][]string{"level": {"4"}}}, 401, 0, 403},
	} {
		t.Run(c.name, func(t *testing.T) {
			for who, caller := range map[string]*Caller{"nobody": nil, "key": key, "alice": alice} {
				want := map[string]int{"nobody": c.nobody, "key": c.key, "alice": c.alice}[who]
				r := c.rule.Allows(caller)
				got := 0
				if r != nil {
					got = r.Status
					checkMissing(t, r, c.rule)
				}
				if got != want {
					t.Errorf("%s: got %d, want %d", who, got, want)
				}
			}
		})
	}
}

// checkMissing compares the challenge of a missing credential with what the
// rule accepts.
func checkMissing(t *testing.T, r *Refusal, rule *Rule) {
	t.Helper()
	want := ""
	switch {
	case r.Status == 401:
		if rule.JWT || len(rule.Claims) > 0 {
			want = challengeBearer
		}
		if want != "" && len(rule.Keys) > 0 {
			want += ", "
		}
		if len(rule.Keys) > 0 {
			want += challengeKey
		}
	case strings.HasPrefix(r.Detail, "the token"):
		want = challengeBearer + `, error="insufficient_scope", error_description="` + r.Detail + `"`
	}
	if r.Challenge != want {
		t.Errorf("got challenge %q, want %q", r.Challenge, want)
	}
}

// TestNames: a name can be logged, an ID distinguishes callers.
func TestNames(t *testing.T) {
	g, _ := newGate(t, func(c *Config) { c.Issuer = "" })
	ids := make(map[uint64]string)
	for _, c := range []struct {
		changes map[string]any
		name    string
	}{
		{nil, "jwt:alice"},
		{map[string]any{"iss": "https://other.example"}, "jwt:alice"},
		{map[string]any{"sub": "a b\n\x1b[31m\u202e\u2028"}, "jwt:a_b__[31m__"},
		{map[string]any{"sub": strings.Repeat("ä", 40)}, "jwt:" + strings.Repeat("ä", 32)},
		{map[string]any{"sub": strings.Repeat("ä", 41)}, "jwt:" + strings.Repeat("ä", 32)},
		{map[string]any{"sub": nil, "client_id": "shop"}, "jwt:shop"},
		{map[string]any{"sub": "", "azp": "shop"}, "jwt:shop"},
		{map[string]any{"sub": "shop"}, "jwt:shop"},
		{map[string]any{"sub": "key:web"}, "jwt:key:web"},
		{map[string]any{"sub": nil}, "jwt:"},
	} {
		caller := accepted(t, g, withToken(sign(t, jose.HS256, octKey, "oct", claimSet(c.changes))), c.name)
		if other, ok := ids[caller.ID()]; ok {
			t.Errorf("%v has the ID of %s", c.changes, other)
		}
		ids[caller.ID()] = c.name
	}
	again := accepted(t, g, withToken(sign(t, jose.HS256, octKey, "oct", claimSet(map[string]any{"jti": "2"}))), "jwt:alice")
	if ids[again.ID()] != "jwt:alice" {
		t.Error("another token of alice has another ID")
	}
}

// A rule treats a user that another protocol has authenticated as the API key of that
// name.
func TestUsersAreKeys(t *testing.T) {
	g, _ := newGate(t, nil)
	key := accepted(t, g, Credentials{APIKey: webKey}, "key:web")
	web := NewCaller("web")
	if web.Name() != "user:web" || web.ID() == 0 || web.ID() == key.ID() || web.ID() != NewCaller("web").ID() {
		t.Errorf("name %q, ID %d, another time %d, of the API key %d; want user:web and an ID of its own", web.Name(), web.ID(), NewCaller("web").ID(), key.ID())
	}
	if name := NewCaller("a\nb").Name(); name != "user:a_b" {
		t.Errorf("name %q, want it fit for a log", name)
	}
	for _, c := range []struct {
		user string
		rule Rule
		want bool
	}{
		{"web", Rule{Keys: []string{"web"}}, true},
		{"web", Rule{Keys: []string{"*"}}, true},
		{"web", Rule{Keys: []string{"user:web", "we"}}, false},
		{"web", Rule{JWT: true}, false},
		{"", Rule{JWT: true}, false},
		{"", Rule{Keys: []string{"default"}}, true},
		{"", Rule{Keys: []string{""}}, false},
	} {
		if got := c.rule.Allows(NewCaller(c.user)) == nil; got != c.want {
			t.Errorf("user %q and rule %+v: allowed %v, want %v", c.user, c.rule, got, c.want)
		}
	}
}
