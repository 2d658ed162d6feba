package redis

import (
	"context"
	"crypto/tls"
	"fmt"
	"strings"
	"testing"
	"time"
)

func TestZeroOptionsAreValid(t *testing.T) {
	var o Options
	if err := o.check(); err != nil {
		t.Fatal(err)
	}
	if o.addr() != "127.0.0.1:6379" || o.network() != "tcp" {
		t.Errorf("%s %s", o.network(), o.addr())
	}
}

func TestWrongOptions(t *testing.T) {
	for _, c := range []struct {
		o    Options
		want string
	}{
		{Options{Addr: "host"}, "expected host:port"},
		{Options{Addr: "host:"}, "expected host:port"},
		{Options{Addr: ":6379"}, "has no host"},
		{Options{Protocol: 4}, "protocol 4"},
		{Options{DB: -1}, "database -1"},
		{Options{ClientName: "a b"}, "client name"},
		{Options{ClientName: "a\r\nQUIT"}, "client name"},
		{Options{User: "u"}, "without a password"},
		{Options{Sockets: -1}, "sockets -1"},
		{Options{Sockets: 5000}, "sockets 5000"},
		{Options{MaxCalls: -1}, "max calls"},
		{Options{MaxBytes: -1}, "max bytes"},
		{Options{Limits: Limits{Depth: 5000}}, "limit of depth 5000"},
		{Options{Limits: Limits{Bulk: -1}}, "limit of a string"},
		{Options{Timeout: -1}, "timeout"},
		{Options{Backoff: -1}, "backoff"},
		{Options{SlowThreshold: 1}, "only together"},
		{Options{OnSlow: func(Observation) {}}, "only together"},
	} {
		_, err := Connect(t.Context(), c.o)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%v: %v, want %q", c.o, err, c.want)
		}
	}
}

func TestOptionsShowNoPassword(t *testing.T) {
	o := Options{Addr: "h:1", User: "app", Password: "secret", DB: 3, TLS: &tls.Config{}}
	for _, text := range []string{o.String(), fmt.Sprint(o), fmt.Sprintf("%+v", o), fmt.Sprintf("%#v", o), fmt.Sprint(&o)} {
		if strings.Contains(text, "secret") || !strings.Contains(text, "rediss://app:***@h:1 database 3") {
			t.Errorf("%q", text)
		}
	}
	o = Options{Addr: "/run/r.sock", Credentials: func(context.Context) (string, string, error) { return "", "", nil }}
	if got, want := o.String(), "unix://(credentials)@/run/r.sock"; got != want {
		t.Errorf("%q, want %q", got, want)
	}
}

func TestParseURL(t *testing.T) {
	for _, c := range []struct {
		url  string
		want Options
	}{
		{"redis://", Options{Addr: "127.0.0.1:6379"}},
		{"redis://cache", Options{Addr: "cache:6379"}},
		{"redis://cache:7000/", Options{Addr: "cache:7000"}},
		{"redis://cache/3", Options{Addr: "cache:6379", DB: 3}},
		{"redis://[::1]:7000/3", Options{Addr: "[::1]:7000", DB: 3}},
		{"redis://:pw@cache", Options{Addr: "cache:6379", Password: "pw"}},
		{"redis://app:p%40ss%2F%3F%23@cache", Options{Addr: "cache:6379", User: "app", Password: "p@ss/?#"}},
		{"unix:///run/redis.sock", Options{Addr: "/run/redis.sock"}},
		{"unix://app:pw@/run/redis.sock?db=2", Options{Addr: "/run/redis.sock", User: "app", Password: "pw", DB: 2}},
		{"redis://h?db=4&protocol=2&client_name=api&sockets=2&timeout=500ms&dial_timeout=1s&stall_timeout=-1s",
			Options{Addr: "h:6379", DB: 4, Protocol: 2, ClientName: "api", Sockets: 2, Timeout: 500 * time.Millisecond, DialTimeout: time.Second, StallTimeout: -time.Second}},
		{"redis://h?backoff=1ms&max_backoff=1s&retries=-1&max_calls=7&max_bytes=8&fail_fast=true&wait_when_full=1",
			Options{Addr: "h:6379", Backoff: time.Millisecond, MaxBackoff: time.Second, Retries: -1, MaxCalls: 7, MaxBytes: 8, FailFast: true, WaitWhenFull: true}},
		{"redis://h?no_wait=true&max_exclusive=9", Options{Addr: "h:6379", NoWait: true, MaxExclusive: 9}},
		{"redis://h?fail_fast=false&wait_when_full=0", Options{Addr: "h:6379"}},
	} {
		got, err := ParseURL(c.url)
		if err != nil {
			t.Errorf("%s: %v", c.url, err)
		}
		if fmt.Sprintf("%+v", plainOptions(got)) != fmt.Sprintf("%+v", plainOptions(c.want)) {
			t.Errorf("%s: %+v, want %+v", c.url, plainOptions(got), plainOptions(c.want))
		}
	}
	o, err := ParseURL("rediss://cache.example:7000")
	if err != nil || o.TLS == nil || o.TLS.ServerName != "cache.example" || o.TLS.MinVersion != tls.VersionTLS12 {
		t.Errorf("%+v, %v", o.TLS, err)
	}
}

// plainOptions is Options without the method that hides the password.
type plainOptions Options

func TestWrongURLs(t *testing.T) {
	for _, c := range []struct{ url, want string }{
		{"http://h", "scheme"},
		{"h:6379", "redis"},
		{"", "scheme"},
		{"redis:h", "expected redis://"},
		{"redis://h#3", "fragment"},
		{"redis://h:0", "port"},
		{"redis://h:99999", "port"},
		{"redis://h:x", "not a valid URL"},
		{"redis://h/x", "database"},
		{"redis://h/-1", "database"},
		{"redis://h/1/2", "database"},
		{"redis://h/1?db=2", "the path names a database"},
		{"redis://h?nope=1", "unknown option \"nope\""},
		{"redis://h?db=1&db=2", "2 times"},
		{"redis://h?db=x", "expected a number"},
		{"redis://h?timeout=5", "expected a duration"},
		{"redis://h?fail_fast=yes", "expected true or false"},
		{"redis://h?protocol=5", "protocol 5"},
		{"redis://h?timeout=-1s", "negative"},
		{"redis://h?%zz", "query"},
		{"redis://app@h", "without a password"},
		{"unix://h/path", "unix:///"},
		{"unix://", "unix:///"},
		{"unix:///", "unix:///"},
	} {
		o, err := ParseURL(c.url)
		if err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%q: %v, %v; want %q", c.url, o, err, c.want)
		}
	}
}

// Passwords that are not escaped make strange URLs. No error may contain a part of one.
func TestURLErrorsShowNoPassword(t *testing.T) {
	for _, special := range []string{"/", "?", "#", "%", "@/", "/?", "%zz", "[", " ", ":", "\x00", "?x=", "?db="} {
		for _, password := range []string{"herring" + special + "trout", special + "herringtrout", "12" + special + "trout"} {
			for _, url := range []string{"redis://:" + password + "@host", "rediss://app:" + password + "@host/2", "unix://:" + password + "@/run/x"} {
				_, err := ParseURL(url)
				if err != nil && (strings.Contains(err.Error(), "herring") || strings.Contains(err.Error(), "trout")) {
					t.Errorf("%q: %v", url, err)
				}
			}
		}
	}
}
