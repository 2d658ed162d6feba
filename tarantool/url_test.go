package tarantool_test

import (
	"fmt"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/tarantool"
)

// plain is Options without the method that hides the password.
type plain tarantool.Options

func TestParseURL(t *testing.T) {
	for url, want := range map[string]tarantool.Options{
		"tarantool://":                         {Addr: "127.0.0.1:3301"},
		"tarantool://app:p%40ss@h:4000":        {Addr: "h:4000", User: "app", Password: "p@ss"},
		"tarantool+unix:///run/app.sock":       {Addr: "/run/app.sock"},
		"tarantool://h?auth=chap-sha1&window=": {},
		"tarantool://h/users":                  {},
		"tarantool://h?db=1":                   {},
		"tarantool://h?auth=chap-sha1&sockets=2&window=3&timeout=4s&dial_timeout=5s&stall_timeout=6s&backoff=7ms&max_backoff=8ms": {
			Addr: "h:3301", Auth: tarantool.AuthCHAPSHA1, Sockets: 2, Window: 3, Timeout: 4 * time.Second, DialTimeout: 5 * time.Second,
			StallTimeout: 6 * time.Second, Backoff: 7 * time.Millisecond, MaxBackoff: 8 * time.Millisecond},
		"tarantool://h?retries=-1&max_calls=2&max_bytes=3&max_reply=4&max_blocking=5&no_wait=true&fail_fast=1&wait_when_full=true": {
			Addr: "h:3301", Retries: -1, MaxCalls: 2, MaxBytes: 3, MaxReply: 4, MaxBlocking: 5, NoWait: true, FailFast: true, WaitWhenFull: true},
	} {
		got, err := tarantool.ParseURL(url)
		if (err != nil) != (want.Addr == "") || fmt.Sprintf("%+v", plain(got)) != fmt.Sprintf("%+v", plain(want)) {
			t.Errorf("%s: %+v, %v; expected %+v", url, plain(got), err, plain(want))
		}
	}
}
