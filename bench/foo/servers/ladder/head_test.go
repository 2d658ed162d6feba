package main

import (
	"strings"
	"testing"
)

func TestReadHead(t *testing.T) {
	const plain = "GET /foo HTTP/1.1\r\nHost: a.example:80\r\nContent-Length: 12\r\n\r\n"
	if h, v := readHead([]byte(plain + "body")); v != headComplete || h != (head{len(plain), 12}) {
		t.Errorf("%+v, %v", h, v)
	}
	for i := range plain {
		if _, v := readHead([]byte(plain[:i])); v != headIncomplete {
			t.Errorf("%q: %v, want that more bytes are needed", plain[:i], v)
		}
	}
	for _, same := range []string{
		strings.Replace(plain, "GET", "POST", 1), strings.Replace(plain, "Host", "hOST", 1), strings.Replace(plain, ": 12", ":12 \t", 1),
		strings.Replace(plain, "\r\n\r\n", "\r\nUser-Agent: x y\r\nAccept: */*\r\nAccept-Encoding: gzip\r\nContent-Type: text/html\r\n\r\n", 1),
	} {
		if h, v := readHead([]byte(same)); v != headComplete || h != (head{len(same), 12}) {
			t.Errorf("%q: %+v, %v", same, h, v)
		}
	}
	with := func(field string) string { return strings.Replace(plain, "\r\n\r\n", "\r\n"+field+"\r\n\r\n", 1) }
	for _, other := range []string{
		strings.Replace(plain, "GET", "PUT", 1), strings.Replace(plain, "/foo", "/foo?x", 1), strings.Replace(plain, "1.1", "1.0", 1),
		strings.Replace(plain, "Host: a.example:80\r\n", "", 1), strings.Replace(plain, "a.example", "a b", 1), strings.Replace(plain, "a.example:80", "", 1),
		strings.Replace(plain, "12", "1x", 1), strings.Replace(plain, "12", "+12", 1), strings.Replace(plain, "12", "123456789", 1), strings.Replace(plain, "12", "", 1),
		strings.Replace(plain, "Content-Length: 12\r\n", "", 1), with("Content-Length: 12"), with("Host: b"), with("Transfer-Encoding: chunked"),
		with("Expect: 100-continue"), with("Connection: close"), with("Upgrade: h2c"), with("X-Other: 1"), with(" folded"), with("Accept : x"), with("no colon"),
		with("Accept: a\x00b"), with("Accept: \xff"), strings.ReplaceAll(plain, "\r\n", "\n"), strings.Replace(plain, "1.1\r\n", "1.1\n", 1), "\r\n" + plain, "\n",
		with("Accept: " + strings.Repeat("x", maxHead)), strings.Repeat("x", maxHead),
	} {
		if h, v := readHead([]byte(other)); v != headOther {
			t.Errorf("%.100q: %+v, %v, want that it is passed to net/http", other, h, v)
		}
	}
}
