package cluster

import (
	"errors"
	"strings"
	"testing"
)

func TestRedirects(t *testing.T) {
	for _, c := range []struct {
		text string
		want Redirect
		addr string // of a redirect by 10.0.0.1:1; or what is wrong
	}{
		{"MOVED 3999 127.0.0.1:6381", Redirect{false, 3999, "127.0.0.1", 6381}, "10.0.0.1:6381"},
		{"ASK 0 10.0.0.2:6381", Redirect{true, 0, "10.0.0.2", 6381}, "10.0.0.2:6381"},
		{"MOVED 16383 :6379", Redirect{false, 16383, "", 6379}, "10.0.0.1:6379"},
		{"MOVED 1 ?:6379", Redirect{false, 1, "?", 6379}, "10.0.0.1:6379"},
		{"MOVED 1 fd00::1:6379", Redirect{false, 1, "fd00::1", 6379}, "[fd00::1]:6379"},
		{"MOVED 1 [fd00::1]:6379", Redirect{false, 1, "fd00::1", 6379}, "[fd00::1]:6379"},
		{"ASK 1 r1.example.com:6379 and more", Redirect{true, 1, "r1.example.com", 6379}, "r1.example.com:6379"},
		{"MOVED 1 169.254.169.254:80", Redirect{false, 1, "169.254.169.254", 80}, `redirect "169.254.169.254:80": the address "169.254.169.254:80", expected an address that a node may have, not a link-local address or one of a cloud service; if a node has this address, add it to the addresses in the options`},
	} {
		code, message, _ := strings.Cut(c.text, " ")
		got, err := ParseRedirect(code, message)
		if err != nil || got != c.want {
			t.Errorf("%s: %+v, %v", c.text, got, err)
		}
		addr, err := got.Addr(&Addresses{}, "10.0.0.1:1")
		if err != nil {
			addr = err.Error()
		}
		if addr != c.addr {
			t.Errorf("%s leads to %q, expected %q", c.text, addr, c.addr)
		}
		if n := testing.AllocsPerRun(100, func() { _, _ = ParseRedirect(code, message) }); n != 0 {
			t.Errorf("%s: %v allocations", c.text, n)
		}
	}
	if addr, err := (Redirect{Port: 1}).Addr(&Addresses{}, ""); err == nil {
		t.Errorf("a redirect to nowhere leads to %q", addr)
	}
}

func TestRedirectsThatAreRefused(t *testing.T) {
	for text, wrong := range map[string]string{
		"ERR x":                          `the code "ERR", expected MOVED or ASK`,
		"MOVED":                          `the slot "", expected a number from 0 to 16383`,
		"MOVED 16384 a:1":                `the slot "16384", expected a number from 0 to 16383`,
		"MOVED -1 a:1":                   `the slot "-1", expected a number from 0 to 16383`,
		"MOVED 99999999999999999999 a:1": `the slot "99999999999999999999", expected a number from 0 to 16383`,
		"MOVED 1":                        `the address "", expected host:port`,
		"MOVED 1 a":                      `the address "a", expected host:port`,
		"MOVED 1 a:":                     `the address "a:", expected host:port`,
		"MOVED 1 a:0":                    `the address "a:0", expected host:port`,
		"MOVED 1 a:65536":                `the address "a:65536", expected host:port`,
		"MOVED 1 a:+1":                   `the address "a:+1", expected host:port`,
		"ASK 1 " + strings.Repeat("h", 254) + ":1": "a host of 254 bytes, expected at most 253",
	} {
		code, message, _ := strings.Cut(text, " ")
		_, err := ParseRedirect(code, message)
		var refused *RedirectError
		if !errors.As(err, &refused) || refused.Wrong+", expected "+refused.Expected != wrong {
			t.Errorf("%q: %v\nexpected %s", text, err, wrong)
		}
	}
}

func TestAdvice(t *testing.T) {
	for code, want := range map[string]Advice{
		"MOVED":       {AtOnce, ToTarget, true, true},
		"ASK":         {AtOnce, ToTarget, false, false},
		"TRYAGAIN":    {AfterPause, ToOwner, false, false},
		"CLUSTERDOWN": {AfterPause, ToOwner, true, false},
		"READONLY":    {AfterPause, ToOwner, true, false},
		"LOADING":     {AtOnce, ToOther, false, false},
		"MASTERDOWN":  {AtOnce, ToOther, true, false},
		"CROSSSLOT":   {},
		"WRONGTYPE":   {},
		"":            {},
	} {
		if got := Advise(code); got != want {
			t.Errorf("%s: %+v, expected %+v", code, got, want)
		}
	}
}
