package http1

import (
	"bufio"
	"bytes"
	"net/http"
	"testing"
)

// The requests that a load generator and a browser send.
const (
	shortHead = "GET /depts/10001 HTTP/1.1\r\nHost: 127.0.0.1:8080\r\nAccept-Encoding: gzip\r\n\r\n"
	longHead  = "GET /depts/10001?fields=name,employees HTTP/1.1\r\n" +
		"Host: api.example.com\r\n" +
		"Connection: keep-alive\r\n" +
		"sec-ch-ua: \"Chromium\";v=\"131\", \"Not_A Brand\";v=\"24\"\r\n" +
		"sec-ch-ua-platform: \"Linux\"\r\n" +
		"sec-ch-ua-mobile: ?0\r\n" +
		"User-Agent: Mozilla/5.0 (X11; Linux x86_64) AppleWebKit/537.36 (KHTML, like Gecko) Chrome/131.0.0.0 Safari/537.36\r\n" +
		"Accept: application/json\r\n" +
		"Origin: https://app.example.com\r\n" +
		"Sec-Fetch-Site: same-site\r\n" +
		"Sec-Fetch-Mode: cors\r\n" +
		"Sec-Fetch-Dest: empty\r\n" +
		"Referer: https://app.example.com/\r\n" +
		"Accept-Encoding: gzip, deflate, br, zstd\r\n" +
		"Accept-Language: en-US,en;q=0.9\r\n" +
		"If-None-Match: \"0123456789abcdef\"\r\n" +
		"\r\n"
)

func BenchmarkScan(b *testing.B) {
	for _, c := range []struct{ name, in string }{{"short", shortHead}, {"long", longHead}} {
		in := []byte(c.in)
		b.Run(c.name, func(b *testing.B) {
			var s Scanner
			h := new(Head)
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if n, v, why := s.Scan(in, 8192, h); n != len(in) || v != Done {
					b.Fatal(n, v, why)
				}
			}
		})
	}
}

// The head differs from the previous one only in its target, as in a pipeline.
func BenchmarkAgain(b *testing.B) {
	for _, c := range []struct{ name, in string }{{"short", shortHead}, {"long", longHead}} {
		in := []byte(c.in)
		b.Run(c.name, func(b *testing.B) {
			h := new(Head)
			if _, v, why := new(Scanner).Scan(in, 8192, h); v != Done {
				b.Fatal(v, why)
			}
			b.SetBytes(int64(len(in)))
			b.ReportAllocs()
			for b.Loop() {
				if n, ok := Again(in, 8192, h); !ok || n != len(in) {
					b.Fatal(n, ok)
				}
			}
		})
	}
}

// This is the cost of net/http for the same requests.
func BenchmarkReadRequest(b *testing.B) {
	for _, c := range []struct{ name, in string }{{"short", shortHead}, {"long", longHead}} {
		b.Run(c.name, func(b *testing.B) {
			source := bytes.NewReader(nil)
			buffered := bufio.NewReader(source)
			b.ReportAllocs()
			for b.Loop() {
				source.Reset([]byte(c.in))
				buffered.Reset(source)
				if _, err := http.ReadRequest(buffered); err != nil {
					b.Fatal(err)
				}
			}
		})
	}
}

func BenchmarkAnswer(b *testing.B) {
	buf := make([]byte, 0, 1024)
	b.ReportAllocs()
	for b.Loop() {
		buf = AppendStatus(buf[:0], 1, 200)
		buf = AppendField(buf, "Content-Type", "application/json")
		buf = AppendField(buf, "Content-Length", "1234")
		buf = AppendField(buf, "Etag", `"0123456789abcdef0123456789abcdef"`)
		buf = append(buf, "Date: "...)
		buf = AppendDate(buf, 1732233600)
		buf = append(buf, "\r\n\r\n"...)
	}
}
