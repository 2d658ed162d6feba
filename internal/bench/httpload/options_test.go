package httpload

import (
	"crypto/tls"
	"strings"
	"testing"
)

// Errors say which option is wrong, and contain no secrets.
func TestWrongOptions(t *testing.T) {
	const url = "http://127.0.0.1:1/"
	for problem, o := range map[string]Options{
		`scheme "ftp"`:              {URL: "ftp://a.example/"},
		"expected one such as":      {URL: "http:///path"},
		"the URL: invalid":          {URL: "http://me:open-sesame@a.example:port/"},
		`method "GE T"`:             {URL: url, Method: "GE T"},
		`method "CONNECT"`:          {URL: url, Method: "CONNECT"},
		`header "nothing"`:          {URL: url, Fields: []string{"nothing"}},
		`header "X"`:                {URL: url, Fields: []string{"X: a\r\nY: open-sesame"}},
		"header Connection":         {URL: url, Fields: []string{"Connection: close"}},
		"header content-length":     {URL: url, Fields: []string{"content-length: 7"}},
		"both a user and a header":  {URL: url, User: "a:open-sesame", Fields: []string{"Authorization: Bearer open-sesame"}},
		"a user without a password": {URL: url, User: "open-sesame"},
		"both a unix socket":        {URL: url, UnixSocket: "/s", ConnectTo: "a:1"},
		`"a.example" to connect`:    {URL: url, ConnectTo: "a.example"},
		`"b:1:a:1" to connect`:      {URL: url, ConnectTo: "b:1:a:1"},
		"without TLS":               {URL: url, TLS: new(tls.Config)},
		`status "2x"`:               {URL: url, Statuses: "200,2x"},
		`status "1xx"`:              {URL: url, Statuses: "1xx"},
	} {
		_, err := New(o)
		if err == nil || !strings.Contains(err.Error(), problem) || strings.Contains(err.Error(), "sesame") {
			t.Errorf("%+v: %v, want an error that contains %q", o, err, problem)
		}
	}
}

// mutant: httpload-name-has-secrets
func TestNamesHaveNoSecrets(t *testing.T) {
	target, err := New(Options{URL: "http://me:open-sesame@127.0.0.1:1/a%20b?token=open-sesame"})
	if err != nil {
		t.Fatal(err)
	}
	if got, want := target.Name(), "GET http://127.0.0.1:1/a%20b?…"; got != want {
		t.Errorf("%s, want %s", got, want)
	}
}

func TestAddresses(t *testing.T) {
	for want, o := range map[string]Options{
		"tcp a.example:80":   {URL: "a.example"},
		"tcp a.example:443":  {URL: "https://a.example"},
		"tcp [::1]:8080":     {URL: "http://[::1]:8080/"},
		"tcp 192.0.2.1:1":    {URL: "a.example", ConnectTo: "192.0.2.1:1"},
		"tcp b.example:2":    {URL: "a.example", ConnectTo: "::b.example:2"},
		"tcp [::1]:2":        {URL: "a.example", ConnectTo: "a.example:80:[::1]:2"},
		"unix /run/a.socket": {URL: "a.example", UnixSocket: "/run/a.socket"},
	} {
		target, err := New(o)
		if err != nil {
			t.Fatal(err)
		}
		if network, address := target.Address(); network+" "+address != want {
			t.Errorf("%+v: %s %s, want %s", o, network, address, want)
		}
	}
}
