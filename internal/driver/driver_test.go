package driver

import (
	"context"
	"crypto/tls"
	"errors"
	"net"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
)

func TestCredentialsThatFail(t *testing.T) {
	sealed := errors.New("vault is sealed")
	l := Login{Credentials: func(context.Context) (string, string, error) { return "", "half", sealed }}
	if _, password, err := l.Get(t.Context()); !errors.Is(err, sealed) || password != "" {
		t.Errorf("%q, %v", password, err)
	}
	l.Credentials = func(context.Context) (string, string, error) { panic("no") }
	if _, _, err := l.Get(t.Context()); err == nil || !strings.Contains(err.Error(), "Credentials panicked") {
		t.Error(err)
	}
	l.Credentials = func(context.Context) (string, string, error) { return "app", "secret", nil }
	if user, password, err := l.Get(t.Context()); user != "app" || password != "secret" || err != nil {
		t.Errorf("%q, %q, %v", user, password, err)
	}
}

func TestDialerThatFails(t *testing.T) {
	for want, dialer := range map[string]func(context.Context, string, string) (net.Conn, error){
		"function Dialer panicked: no": func(context.Context, string, string) (net.Conn, error) { panic("no") },
		"neither":                      func(context.Context, string, string) (net.Conn, error) { return nil, nil },
		"refused":                      func(context.Context, string, string) (net.Conn, error) { return nil, errors.New("refused") },
	} {
		e := Endpoint{Addr: "h:1", Dialer: dialer}
		if conn, err := e.Dial(t.Context()); conn != nil || err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%v, %v; want %q", conn, err, want)
		}
	}
}

// mutant: driver-server-name-missing
func TestServerNameIsTakenFromTheAddress(t *testing.T) {
	for _, c := range []struct {
		addr string
		cfg  *tls.Config
		want string
	}{
		{"cache.example:1", &tls.Config{}, "cache.example"},
		{"cache.example:1", &tls.Config{ServerName: "other"}, "other"},
		{"cache.example:1", &tls.Config{InsecureSkipVerify: true}, ""},
		{"[::1]:1", &tls.Config{}, "::1"},
		{"/run/x", &tls.Config{}, ""},
	} {
		e := Endpoint{Addr: c.addr, TLS: c.cfg}
		before := c.cfg.ServerName
		if got := e.tlsConfig().ServerName; got != c.want || c.cfg.ServerName != before {
			t.Errorf("%s: server name %q, want %q", c.addr, got, c.want)
		}
	}
}

type kind string

type options struct {
	path     string
	MaxCount int
	Wait     time.Duration
	Fast     bool
	Name     kind
}

var testURLs = URLs[options]{
	Driver: "db", Plain: "db", Secure: "dbs", Unix: "db+unix", Port: "99", Example: "db://user:password@host:port",
	Path:    func(o *options, path string) error { o.path = path; return nil },
	Options: Fields[options]("max_count wait fast name"),
}

func TestURLs(t *testing.T) {
	var o options
	got, err := testURLs.Parse("dbs://app:p%40ss@h/way?max_count=3&wait=2s&fast=1&name=x", &o)
	if err != nil || got.Addr != "h:99" || got.User != "app" || got.Password != "p@ss" || got.TLS.ServerName != "h" {
		t.Errorf("%+v, %v", got, err)
	}
	if (o != options{"way", 3, 2 * time.Second, true, "x"}) {
		t.Errorf("%+v", o)
	}
}

// The error for an option names the option and what was expected.
func TestWrongURLOptions(t *testing.T) {
	for url, want := range map[string]string{
		"db://h?max_count=x":     `db: option max_count of the URL is "x", expected a number`,
		"db://h?wait=5":          `db: option wait of the URL is "5", expected a duration such as 500ms or 2s`,
		"db://h?fast=yes":        `db: option fast of the URL is "yes", expected true or false`,
		"db://h?nope=1":          `db: unknown option "nope" in the URL, expected one of max_count, wait, fast, name`,
		"db://h?wait=1s&wait=2s": "db: option wait appears 2 times in the URL, expected once",
		"db://h:0":               "db: the URL's port is not a number from 1 to 65535",
		"http://h":               "db: the URL's scheme is not db, dbs or db+unix",
		"db+unix://h/x":          "db: a db+unix URL needs the absolute path of a socket, as in db+unix:///run/server.sock",
		"db://h?name=a@b":        "db: the URL's query has an @; write ? in a password as %3F",
	} {
		if _, err := testURLs.Parse(url, new(options)); err == nil || err.Error() != want {
			t.Errorf("%s: %v\nwant %s", url, err, want)
		}
	}
	noPath := testURLs
	noPath.Path = nil
	if _, err := noPath.Parse("db://h/x", new(options)); err == nil || !strings.Contains(err.Error(), "expected none") {
		t.Error(err)
	}
}

func TestErrorsOfTheEngineGetTheNameOfTheCall(t *testing.T) {
	fail := Errors{Addr: "h:1"}
	inner := &slipstream.Error{Outcome: slipstream.NotSent, Err: net.ErrClosed}
	for _, c := range []struct {
		err     error
		outcome slipstream.Outcome
	}{{inner, slipstream.NotSent}, {errors.Join(inner), slipstream.NotSent}, {net.ErrClosed, slipstream.MaybeExecuted}} {
		got := fail.Named("GET", c.err)
		if got.Op != "GET" || got.Addr != "h:1" || got.Outcome != c.outcome || !errors.Is(got, net.ErrClosed) {
			t.Errorf("%+v", got)
		}
	}
	if inner.Op != "" {
		t.Error("the engine's error was changed")
	}
}

type observer func(slipstream.Observation)

func (f observer) Observe(o slipstream.Observation) { f(o) }

func TestPanicsOfHooksAreContained(t *testing.T) {
	h := Hooks{
		Observer: observer(func(slipstream.Observation) { panic("observer") }),
		OnSlow:   func(slipstream.Observation) { panic("slow") },
		OnEvent:  func(slipstream.Event) { panic("event") },
	}
	h.Observe(t.Context(), slipstream.Observation{Start: time.Now()})
	h.Event(slipstream.Event{})
	if h.Panics() != 3 {
		t.Errorf("%d panics counted, want 3", h.Panics())
	}
}

func TestObservationsCarryTheContextOfTheCaller(t *testing.T) {
	type key struct{}
	ctx := context.WithValue(t.Context(), key{}, "span")
	var seen slipstream.Observation
	h := Hooks{System: "db", Namespace: "n", Addr: "h:1", Observer: observer(func(o slipstream.Observation) { seen = o })}
	start := time.Now()
	h.Observe(ctx, slipstream.Observation{Op: "GET", Start: start})
	if seen.Context.Value(key{}) != "span" || seen.System != "db" || seen.Namespace != "n" || seen.Addr != "h:1" || seen.Op != "GET" || seen.End.Before(start) || seen.Duration() != seen.End.Sub(start) {
		t.Errorf("%+v", seen)
	}
}
