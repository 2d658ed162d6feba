package config

import (
	"math"
	"net/netip"
	"path/filepath"
	"reflect"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/gateway/resource"
)

// fullHTTP is the configuration of HTTP in testdata/good/full.yaml.
func fullHTTP() HTTP {
	return HTTP{
		Engine:      NetHTTP,
		Compression: []string{"gzip", "zstd"}, Batch: 50, HideOpenAPI: true,
		TrustedProxies: []netip.Prefix{netip.MustParsePrefix("10.0.0.0/8"), netip.MustParsePrefix("192.0.2.1/32"), netip.MustParsePrefix("fd00::/8")},
		Hosts:          []string{"docs.example.com", "Docs.internal", "192.0.2.7", "2001:db8::7", "*"},
		CORS:           CORS{Origins: []string{"https://app.example", "http://[::1]:3000", "*"}, Headers: []string{"X-Custom"}, MaxAge: time.Hour},
		Limits: Limits{
			Client: Rate{PerSecond: 0.5, Burst: 20}, Caller: Rate{PerSecond: 1000.25, Burst: 1001},
			RequestTimeout: 20 * time.Second, HeaderTimeout: 250 * time.Millisecond, IdleTimeout: 2 * time.Minute, StallTimeout: time.Minute,
			Header: 4 << 10, Connections: 100, PerAddress: 50,
		},
	}
}

// declared is a Config made in Go with all that is required.
func declared(r ...Resource) Config {
	c := Config{Origin: Origin{URL: "sqlite:shop.db"}, Resources: r}
	for i := range c.Resources {
		c.Resources[i].Resource = resource.Resource{Name: "r" + string(rune('a'+i)), Key: []string{"id"}, Root: resource.Node{Table: "t"}}
	}
	return c
}

// TestDefaultsOfHTTP: fields that a Config made in Go omits, and settings that its
// zero values cannot express.
func TestDefaultsOfHTTP(t *testing.T) {
	c := declared(Resource{}, Resource{Access: &Access{Keys: []string{"web"}}}).WithDefaults()
	want := HTTP{Engine: defaultEngine(), Compression: []string{"zstd", "gzip"}, Batch: 1000, Limits: Limits{
		RequestTimeout: 10 * time.Second, HeaderTimeout: 5 * time.Second, IdleTimeout: time.Minute, StallTimeout: 30 * time.Second,
		Header: 64 << 10, Connections: 17_000,
	}}
	if !reflect.DeepEqual(c.HTTP, want) || !reflect.DeepEqual(Default().HTTP, want) {
		t.Errorf("got %+v and %+v, want %+v", c.HTTP, Default().HTTP, want)
	}
	if c.Log.Slow != time.Second || c.Tracing != (Tracing{}) || !reflect.DeepEqual(c.Auth, Auth{}) {
		t.Errorf("got log %+v, tracing %+v, auth %+v, want slow 1s and nothing else", c.Log, c.Tracing, c.Auth)
	}
	if a, b := c.Resources[0].CacheControl, c.Resources[1].CacheControl; a != "no-cache" || b != "private, no-cache" {
		t.Errorf("got Cache-Control %q and with access %q, want no-cache and private, no-cache", a, b)
	}
	c = Config{
		HTTP: HTTP{Compression: []string{}, CORS: CORS{Origins: []string{"*"}},
			Limits: Limits{Client: Rate{PerSecond: 0.001}, Caller: Rate{PerSecond: math.Inf(1)}}},
		Auth:    Auth{JWT: JWT{Keys: "jwks.json"}},
		Tracing: Tracing{Endpoint: "http://a"},
		Log:     Log{Slow: -1},
	}.WithDefaults()
	if c.HTTP.Compression == nil || len(c.HTTP.Compression) != 0 {
		t.Errorf("got compression %v, want none", c.HTTP.Compression)
	}
	if got := [...]int{c.HTTP.Limits.Client.Burst, c.HTTP.Limits.Caller.Burst}; got != [...]int{1, maxRate} {
		t.Errorf("got bursts %v, want 1 and %d", got, maxRate)
	}
	if c.HTTP.CORS.MaxAge != 10*time.Minute || c.Auth.JWT.Leeway != 30*time.Second || c.Log.Slow != -1 ||
		c.Tracing != (Tracing{Endpoint: "http://a", Sample: 0.01, Service: "slipstream"}) {
		t.Errorf("got %+v", c)
	}
}

// TestOff: zeros that mean something else than an omitted field survive being
// written.
func TestOff(t *testing.T) {
	c, err := Parse("off.yaml", []byte(`origin: { url: sqlite:shop.db }
resources: { depts: { table: dept, key: [deptno] } }
http: { compression: none, cors: { origins: ["*"], max_age: 0s } }
auth: { jwt: { keys: jwks.json, audience: any, leeway: 0s } }
tracing: { endpoint: "https://collector.example/otlp", sample: 0 }
log: { slow: 0s, requests: { file: "-", sample: 0 } }
`))
	if err != nil {
		t.Fatal(err)
	}
	sameAgain(t, c)
	if c.HTTP.Compression == nil || len(c.HTTP.Compression) > 0 || c.HTTP.CORS.MaxAge >= 0 || c.Auth.JWT.Leeway >= 0 || c.Tracing.Sample >= 0 || c.Log.Slow >= 0 || c.Log.RequestSample >= 0 {
		t.Errorf("got %+v, want everything off", c)
	}
	if again, err := Parse("list.yaml", []byte(strings.Replace(string(c.Marshal()), "compression: none", "compression: []", 1))); err != nil ||
		!reflect.DeepEqual(again.HTTP, c.HTTP) {
		t.Errorf("got %v, %v, want an empty list to be none", again, err)
	}
}

// TestValidateHTTP: mistakes that only Go programs can make are written out, and
// so refused.
func TestValidateHTTP(t *testing.T) {
	for _, test := range []struct {
		change func(*Config)
		want   string
	}{
		{func(c *Config) { c.HTTP.Compression = []string{"none"} }, `http.compression[0]: the text "none" is not a valid value`},
		{func(c *Config) { c.HTTP.Limits.Client.Burst = 5 }, `http.limits.client: field "rate" is missing`},
		{func(c *Config) { c.HTTP.Limits.Client.PerSecond = -1 }, "http.limits.client.rate: the number -1"},
		{func(c *Config) { c.HTTP.Limits.Client.PerSecond = math.NaN() }, "http.limits.client.rate: "},
		{func(c *Config) { c.HTTP.Limits.Caller.PerSecond = math.Inf(1) }, "http.limits.caller.rate: "},
		{func(c *Config) { c.HTTP.TrustedProxies = []netip.Prefix{{}} }, "http.trusted_proxies[0]: "},
		{func(c *Config) { c.HTTP.TrustedProxies = []netip.Prefix{netip.MustParsePrefix("10.1.2.3/8")} }, "http.trusted_proxies[0]: the text \"10.1.2.3/8\" has bits set beyond"},
		{func(c *Config) { c.HTTP.Hosts = []string{"docs.example:80"} }, `http.hosts[0]: the text "docs.example:80" has a port`},
		{func(c *Config) { c.HTTP.CORS.Headers = []string{"X-A"} }, `http.cors: field "origins" is missing`},
		{func(c *Config) { c.HTTP.CORS.MaxAge = time.Hour }, `http.cors: field "origins" is missing`},
		{func(c *Config) { c.HTTP.CORS = CORS{Origins: []string{"*"}, Credentials: true} }, "http.cors.credentials: true beside"},
		{func(c *Config) { c.HTTP.Limits.Header = 1 }, "http.limits.header: "},
		{func(c *Config) { c.Auth.JWT.Audience = "a" }, `auth.jwt: field "keys" is missing`},
		{func(c *Config) { c.Auth.JWT.Leeway = time.Second }, `auth.jwt: field "audience" is missing`},
		{func(c *Config) { c.Auth.JWT.Keys = "jwks.json" }, `auth.jwt: field "audience" is missing; expected audience: "name", which`},
		{func(c *Config) { c.Tracing.Sample = 0.5 }, `tracing: field "endpoint" is missing`},
		{func(c *Config) { c.Tracing = Tracing{Endpoint: "http://a", Sample: 2} }, "tracing.sample: the number 2"},
		{func(c *Config) { c.Log.Slow = time.Hour }, "log.slow: "},
		{func(c *Config) { c.Log.RequestSample = 0.5 }, `log.requests: field "file" is missing`},
		{func(c *Config) { c.Log.Requests, c.Log.RequestSample = "-", 1.5 }, "log.requests.sample: the number 1.5"},
		{func(c *Config) { c.Resources[0].Access = &Access{} }, "resources.ra.access: no caller could read"},
		{func(c *Config) { c.Resources[0].Access = &Access{Claims: map[string][]string{}} }, "resources.ra.access: no caller could read"},
		{func(c *Config) { c.Resources[0].Access = &Access{Claims: map[string][]string{"scope": nil}} }, "resources.ra.access.claims.scope: a list of 0"},
		{func(c *Config) { c.Resources[0].Access = &Access{Keys: []string{"web"}} }, "resources.ra.access.keys: no API key is known"},
		{func(c *Config) { c.Resources[0].CacheControl = "stale-if-error=60" }, "resources.ra.cache_control: stale-if-error"},
	} {
		c := declared(Resource{})
		if err := c.Validate(); err != nil {
			t.Fatalf("before the change: %v", err)
		}
		test.change(&c)
		if err := c.Validate(); err == nil || !strings.Contains(err.Error(), test.want) {
			t.Errorf("got %v, want %s", err, test.want)
		}
	}
	good := declared(Resource{Access: &Access{Keys: []string{"*"}, Claims: map[string][]string{"a b": {"é"}}}})
	good.Auth = Auth{Keys: "keys.txt", JWT: JWT{Keys: "jwks.json", Audience: AnyAudience}}
	good.HTTP = HTTP{Compression: []string{}, Limits: Limits{Client: Rate{PerSecond: math.SmallestNonzeroFloat64}}}
	if err := good.Validate(); err != nil {
		t.Errorf("a good one: %v", err)
	}
}

// TestDirectives: names are found in any case and never inside a quoted string.
func TestDirectives(t *testing.T) {
	for _, test := range []struct {
		header string
		want   string // names, those with a value with "=" after them; "" refused
	}{
		{"no-cache", "no-cache"},
		{"Private, MAX-AGE=5", "private max-age="},
		{"public , ,max-age = 5,", "public max-age="},
		{`private="a, stale-if-error=5", x="\", public"`, "private= x="},
		{`stale-if-error="5"`, "stale-if-error="},
		{`private="a, public`, ""},
		{`x="\"`, ""},
		{"=5", ""},
		{"no cache", ""},
		{"a;b", ""},
		{",", ""},
	} {
		all, ok := directives(test.header)
		var names []string
		for _, d := range all {
			if d.hasValue {
				d.name += "="
			}
			names = append(names, d.name)
		}
		if got := strings.Join(names, " "); ok != (test.want != "") || ok && got != test.want {
			t.Errorf("%s: got %q, %v, want %q", test.header, got, ok, test.want)
		}
	}
}

// TestCacheControl: what may be said depends on promise and access.
func TestCacheControl(t *testing.T) {
	const promise, none, few = "", "promise: none, ", `access: { keys: ["*"] }, `
	for _, test := range []struct {
		kind, header string
		want         string // part of the message; "" accepted
	}{
		{promise, "max-age=60", ""},
		{promise, "public, s-maxage=60, immutable", ""},
		{promise, "max-age=60, Stale-While-Revalidate=60", "stale-while-revalidate lets"},
		{promise, `x="stale-if-error=1"`, ""},
		{promise, "STALE-IF-ERROR = 1", "stale-if-error lets"},
		{none, "max-age=1, stale-while-revalidate=60, stale-if-error=60", ""},
		{few, "private, max-age=60", ""},
		{few, "no-store", ""},
		{few, "no-cache", ""},
		{few, "Public, no-cache", "public lets"},
		{few, "private, S-MaxAge=5", "s-maxage lets"},
		{few, "max-age=60", "a shared cache could"},
		{few, `private="X-A", max-age=60`, "a shared cache could"},
		{none + few, "private, stale-if-error=60", ""},
		{few, "private, stale-if-error=60", "stale-if-error lets"},
		{promise, "no cache", "not a list of directives"},
	} {
		text := "origin: { url: sqlite:shop.db }\nauth: { keys: keys.txt }\nresources:\n  a: { table: a, key: [a], " + test.kind + "cache_control: '" + test.header + "' }\n"
		_, err := Parse("cache.yaml", []byte(text))
		if (err == nil) != (test.want == "") || err != nil && !strings.Contains(err.Error(), "resources.a.cache_control: "+test.want) {
			t.Errorf("%s%s: got %v, want %q", test.kind, test.header, err, test.want)
		}
	}
}

// TestAuthPaths: the files lie beside the configuration file, wherever the
// process was started.
func TestAuthPaths(t *testing.T) {
	c := Config{Origin: Origin{Dir: filepath.FromSlash("/etc/shop")}}
	for _, test := range []struct{ name, want string }{
		{"keys.txt", "/etc/shop/keys.txt"}, {"/run/jwks.json", "/run/jwks.json"}, {"", ""},
	} {
		if got := c.Path(test.name); got != filepath.FromSlash(test.want) {
			t.Errorf("%q: got %s, want %s", test.name, got, test.want)
		}
	}
	c.Origin.Dir = ""
	if got := c.Path("keys.txt"); got != "keys.txt" {
		t.Errorf("without a directory: got %s, want keys.txt", got)
	}
	for keys, want := range map[string]string{"jwks.json": "", "https://login.example/keys": "https://login.example/keys", "": ""} {
		if got := (&JWT{Keys: keys}).KeysURL(); got != want {
			t.Errorf("%q: got the URL %q, want %q", keys, got, want)
		}
	}
}

// TestRedactedEndpoint: a URL that may hold a password is hidden.
func TestRedactedEndpoint(t *testing.T) {
	for _, test := range []struct{ url, want string }{
		{"", ""},
		{"http://127.0.0.1:4318", "http://127.0.0.1:4318"},
		{"https://collector.example/otlp", "https://collector.example/otlp"},
		{"https://app:hunter2@collector.example:443/otlp", "hidden"},
		{"https://hunter2@collector.example", "hidden"},
		{"http://app:12/hunter2@host", "hidden"},
		{"http://app:hunter2?@host", "hidden"},
		{"http://app:hunter 2@host", "hidden"},
		{"app:hunter2@host:4318", "hidden"},
		{"HTTP://host", "hidden"},
		{"http://host/?token=hunter2", "hidden"},
	} {
		c := Config{Tracing: Tracing{Endpoint: test.url}}
		if shown := string(c.Redacted()); strings.Contains(shown, "hunter2") {
			t.Errorf("%s: shows the password:\n%s", test.url, shown)
		}
		if got := redactEndpoint(test.url); got != test.want || c.Tracing.Endpoint != test.url {
			t.Errorf("%s: got %s and left %s, want %s", test.url, got, c.Tracing.Endpoint, test.want)
		}
	}
}

// TestSuggestionsHideTheEnvironment: what comes from the environment is not
// shown as the right spelling of itself.
func TestSuggestionsHideTheEnvironment(t *testing.T) {
	t.Setenv("TEST_ORIGIN", "https://Hunter2.example/")
	t.Setenv("TEST_PROXY", "172.29.77.55/12")
	_, err := Parse("hidden.yaml", []byte(`origin: { url: sqlite:shop.db }
resources: { depts: { table: dept, key: [deptno] } }
http: { trusted_proxies: ["${TEST_PROXY}"], cors: { origins: ["${TEST_ORIGIN}"] } }
`))
	if err == nil {
		t.Fatal("was accepted")
	}
	for _, secret := range []string{"hunter2", "172.16.0.0", "77"} {
		if strings.Contains(strings.ToLower(err.Error()), secret) {
			t.Errorf("shows %s: %v", secret, err)
		}
	}
}

// TestOrigins: which origins have the form in which browsers send them.
func TestOrigins(t *testing.T) {
	for _, good := range []string{"*", "https://app.example", "http://localhost:3000", "https://xn--bcher-kva.example:8443", "http://[::1]", "http://192.0.2.1:81",
		"https://a_b.example.", "chrome-extension://abcdef", "capacitor://localhost", "https://app.example:80"} {
		if problem := badOrigin(good); problem != "" {
			t.Errorf("%s: got %s", good, problem)
		}
	}
	for _, bad := range []string{"HTTPS://App.Example", "https://app.example:443", "http://app.example:080", "https://app.example/",
		"https://app.example/a?b#c", "https://u:p@app.example", "http://[0:0::1]:81", "https://app.example:",
		"", "https://", "https://:80", "https://a:0", "https://a:65536", "https://a b", "https://bücher.example", "https://[::1%25a]",
		"mailto:a@b", "https:app", "https://a%41", "https://a,b", "file:///a"} {
		if badOrigin(bad) == "" {
			t.Errorf("%s: was accepted", bad)
		}
	}
	for s, want := range map[string]bool{"x": true, "a b": false, "é": false, "": false, "a:b": false} {
		if httpToken.MatchString(s) != want {
			t.Errorf("%q: want a token of RFC 9110: %v", s, want)
		}
	}
}
