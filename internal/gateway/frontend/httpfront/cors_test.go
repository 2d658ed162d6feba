package httpfront

import (
	"reflect"
	"strings"
	"testing"
	"time"
)

func TestCORSOrigins(t *testing.T) {
	const app, other = "https://app.example", "http://[::1]:3000"
	for _, test := range []struct {
		name   string
		config CORS
		origin string
		allow  string // Access-Control-Allow-Origin, "" none
		creds  bool
		varies bool
	}{
		{"nothing configured", CORS{}, app, "", false, false},
		{"nothing configured but fields", CORS{Headers: []string{"X-A"}, Credentials: true}, app, "", false, false},
		{"listed", CORS{Origins: []string{app, other}}, app, app, false, true},
		{"listed second", CORS{Origins: []string{app, other}}, other, other, false, true},
		{"not listed", CORS{Origins: []string{app}}, other, "", false, true},
		{"no origin", CORS{Origins: []string{app}}, "", "", false, true},
		{"host in upper case", CORS{Origins: []string{app}}, "https://APP.Example", app, false, true},
		{"scheme in upper case", CORS{Origins: []string{app}}, "HTTPS://app.example", app, false, true},
		{"configured in upper case", CORS{Origins: []string{"https://App.Example"}}, app, app, false, true},
		{"another scheme", CORS{Origins: []string{app}}, "http://app.example", "", false, true},
		{"another port", CORS{Origins: []string{app}}, app + ":8443", "", false, true},
		{"its own port", CORS{Origins: []string{app}}, app + ":443", "", false, true}, // no browser sends it
		{"a suffix", CORS{Origins: []string{app}}, app + ".evil.example", "", false, true},
		{"a prefix", CORS{Origins: []string{app}}, "https://evil-app.example", "", false, true},
		{"a part", CORS{Origins: []string{app}}, "https://app.exampl", "", false, true},
		{"with a path", CORS{Origins: []string{app}}, app + "/", "", false, true},
		{"a Kelvin sign is no k", CORS{Origins: []string{"https://k.example"}}, "https://\u212a.example", "", false, true},
		{"two origins", CORS{Origins: []string{app}}, app + ", " + other, "", false, true},
		{"null", CORS{Origins: []string{app}}, "null", "", false, true},
		{"null configured", CORS{Origins: []string{"null"}}, "null", "", false, false},
		{"endless", CORS{Origins: []string{app}}, "https://" + strings.Repeat("a", 1<<16), "", false, true},
		{"credentials", CORS{Origins: []string{app}, Credentials: true}, app, app, true, true},
		{"credentials, not listed", CORS{Origins: []string{app}, Credentials: true}, other, "", false, true},
		{"everybody", CORS{Origins: []string{"*"}}, app, "*", false, false},
		{"everybody, without an origin", CORS{Origins: []string{"*"}}, "", "*", false, false},
		{"everybody, null", CORS{Origins: []string{"*"}}, "null", "*", false, false},
		{"everybody, endless", CORS{Origins: []string{"*", app}}, "https://" + strings.Repeat("a", 1<<16), "*", false, false},
		{"everybody and one", CORS{Origins: []string{"*", app}}, app, "*", false, false},
		{"everybody, no credentials for all", CORS{Origins: []string{"*"}, Credentials: true}, app, "*", false, false},
		{"everybody and one with credentials", CORS{Origins: []string{"*", app}, Credentials: true}, app, app, true, true},
		{"everybody but that one", CORS{Origins: []string{app, "*"}, Credentials: true}, other, "*", false, true},
	} {
		t.Run(test.name, func(t *testing.T) {
			p := newCORSPolicy(test.config, nil)
			if got := p.varies(); got != test.varies {
				t.Errorf("varies: got %v, want %v", got, test.varies)
			}
			var allow, creds []string
			if test.allow != "" {
				allow = []string{test.allow}
			}
			if test.creds {
				creds = []string{"true"}
			}
			for name, got := range map[string]*corsFields{"answer": p.answer(test.origin), "preflight": p.preflight(test.origin)} {
				if !reflect.DeepEqual(got.AllowOrigin, allow) || !reflect.DeepEqual(got.AllowCredentials, creds) {
					t.Errorf("%s: got %q, credentials %q; want %q, %q", name, got.AllowOrigin, got.AllowCredentials, allow, creds)
				}
				if test.allow == "" && !reflect.DeepEqual(*got, corsFields{}) {
					t.Errorf("%s: got %+v, want no fields", name, got)
				}
			}
		})
	}
}

func TestCORSFields(t *testing.T) {
	const app = "https://app.example"
	known := "Authorization, X-API-Key, X-Request-Id, traceparent, tracestate, If-None-Match, If-Match"
	for _, test := range []struct {
		name    string
		config  CORS
		headers string
		age     string
	}{
		{"plain", CORS{}, known, "600"},
		{"more fields", CORS{Headers: []string{"X-Custom", "x-api-key", "X-CUSTOM", "IF-MATCH", "X-2"}}, known + ", X-Custom, X-2", "600"},
		{"an hour", CORS{MaxAge: time.Hour}, known, "3600"},
		{"part of a second", CORS{MaxAge: time.Millisecond}, known, "1"},
		{"not remembered", CORS{MaxAge: -1}, known, "0"},
	} {
		t.Run(test.name, func(t *testing.T) {
			test.config.Origins = []string{app}
			p := newCORSPolicy(test.config, nil)
			allow := []string{app}
			if got, want := *p.answer(app), (corsFields{AllowOrigin: allow, ExposeHeaders: exposedOf(nil)}); !reflect.DeepEqual(got, want) {
				t.Errorf("answer: got %+v, want %+v", got, want)
			}
			want := corsFields{AllowOrigin: allow, AllowMethods: []string{"GET, HEAD"}, AllowHeaders: []string{test.headers}, MaxAge: []string{test.age}}
			if got := *p.preflight(app); !reflect.DeepEqual(got, want) {
				t.Errorf("preflight: got %+v, want %+v", got, want)
			}
		})
	}
	for _, name := range []string{"ETag", "Cache-Status", "X-Request-Id", "Retry-After", "WWW-Authenticate"} {
		if !strings.Contains(", "+exposedOf(nil)[0]+",", ", "+name+",") {
			t.Errorf("%s is not exposed", name)
		}
	}
}

func TestIsPreflight(t *testing.T) {
	for _, test := range []struct {
		origin, method string
		want           bool
	}{
		{"https://app.example", "GET", true},
		{"null", "DELETE", true},
		{"https://app.example", "", false}, // OPTIONS from a page itself
		{"", "GET", false},
		{"", "", false},
	} {
		if got := isPreflight(test.origin, test.method); got != test.want {
			t.Errorf("%q, %q: got %v, want %v", test.origin, test.method, got, test.want)
		}
	}
}

func TestCORSAllocations(t *testing.T) {
	p := newCORSPolicy(CORS{Origins: []string{"https://app.example", "https://b.example"}, Credentials: true}, nil)
	for _, origin := range []string{"", "https://app.example", "https://APP.example", "https://other.example", "null"} {
		if got := testing.AllocsPerRun(100, func() {
			p.answer(origin)
			p.preflight(origin)
		}); got != 0 {
			t.Errorf("%q: got %v allocations, want 0", origin, got)
		}
	}
}

func FuzzCORSOrigin(f *testing.F) {
	f.Add("https://app.example")
	f.Add("null")
	f.Add("*")
	const app = "https://app.example"
	p := newCORSPolicy(CORS{Origins: []string{app}, Credentials: true}, nil)
	f.Fuzz(func(t *testing.T, origin string) {
		got := p.answer(origin)
		want := strings.EqualFold(origin, app) && len(origin) == len(app)
		if allowed := len(got.AllowOrigin) == 1 && got.AllowOrigin[0] == app; allowed != want || !allowed && got != &noCORS {
			t.Errorf("%q: got %+v, want allowed %v", origin, got, want)
		}
	})
}
