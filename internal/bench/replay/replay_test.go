package replay

import (
	"bytes"
	"errors"
	"fmt"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/gateway/requestlog"
)

func mustRead(t *testing.T, text string) *File {
	t.Helper()
	f, err := read("dir/file.log", strings.NewReader(text))
	if err != nil {
		t.Fatal(err)
	}
	return f
}

// sent returns requests as strings.
func sent(f *File) (all []string) {
	for i := range f.Len() {
		r := f.Request(i)
		method := "GET"
		if r.Head {
			method = "HEAD"
		}
		all = append(all, fmt.Sprintf("%s %s %d", method, r.Target, r.Status))
	}
	return all
}

func times(f *File) (all []time.Duration) {
	for i := range f.Len() {
		all = append(all, f.Trace(1).At(i))
	}
	return all
}

// Only the path and the query of a line are used, escaped as a request requires.
func TestLists(t *testing.T) {
	f := mustRead(t, "# paths\n\n/a?b=c#d\r\n  http://host:81/e/f?g \nHTTPS://host\nhttps://host?q\n/\u00e9\n//x\n")
	want := []string{"GET /a?b=c 0", "GET /e/f?g 0", "GET / 0", "GET /?q 0", "GET /%C3%A9 0", "GET //x 0"}
	if got := sent(f); !slices.Equal(got, want) || f.Timed() || f.Format != List || f.Name != "file.log" || len(f.Skipped) > 0 {
		t.Errorf("%q of %+v, want %q", got, f, want)
	}
}

// Lines of an access log are sent in the order of their times, and those of the same second are
// spread over it.
//
// mutant: replay-second-at-once
// mutant: replay-in-the-order-of-the-file
func TestAccessLogs(t *testing.T) {
	f := mustRead(t, strings.Join([]string{
		`192.0.2.7 - - [22/Nov/2026:07:08:10 +0100] "GET /late HTTP/1.1" 200 135`,
		`::1 - frank [22/Nov/2026:06:08:09 +0000] "HEAD /first HTTP/1.0" 404 -`,
		`a.example:443 192.0.2.7 - - [22/Nov/2026:07:08:10 +0100] "GET /a\x22b\"?\\ HTTP/2.0" 304 0 "-" "curl/8.5.0 [x]"`,
		`192.0.2.7 - - [22/Nov/2026:07:08:10 +0100] "POST /orders HTTP/1.1" 201 2`,
		`192.0.2.7 - - [22/Nov/2026:07:08:10 +0100] "-" 408 0`,
		`192.0.2.7 - - [22/Nov/2026:07:08:10 +0100] "\x16\x03\x01" 400 0`,
		`192.0.2.7 - - [22/Nov/2026:07:08:10 +0100] "GET /a b HTTP/1.1" 200 0`,
		`192.0.2.7 - - [22/Nov/2026:07:08:10 +0100] "GET http://host/proxied HTTP/1.1" 200 0`,
		`192.0.2.7 - - [22/Nov/2026:07:08:12 +0100] "GET /last HTTP/1.1" 500`,
	}, "\n"))
	want := []string{"HEAD /first 404", "GET /late 200", `GET /a"b"?\ 304`, "GET /proxied 200", "GET /last 500"}
	if got := sent(f); !slices.Equal(got, want) || f.Format != AccessLog || !f.Timed() {
		t.Errorf("%q of a %s, want %q", got, f.Format, want)
	}
	if got, want := times(f), []time.Duration{0, time.Second, time.Second + time.Second/3, time.Second + 2*time.Second/3, 3 * time.Second}; !slices.EqualFunc(got, want, func(a, b time.Duration) bool { return (a - b).Abs() < time.Microsecond }) {
		t.Errorf("%v, want %v", got, want)
	}
	if f.Skipped[OtherMethod] != 1 || f.Skipped[NoPath] != 3 || len(f.Skipped) != 2 {
		t.Errorf("skipped %v", f.Skipped)
	}
	if at := f.Trace(4).At(4); at != 750*time.Millisecond {
		t.Errorf("the last request is sent after %v, four times as fast", at)
	}
}

// The lines have the format that the gateway writes: see package requestlog.
func TestRequestLogs(t *testing.T) {
	f := mustRead(t, strings.Join([]string{
		`{"time":"2026-11-22T07:08:09.045Z","protocol":"http","client":"192.0.2.17","method":"GET","target":"/depts/10?a=\"\u00e9","status":200,"bytes":321,"took_us":12,"source":"hit"}`,
		`{"time":"2026-11-22T07:08:09.044Z","protocol":"http","method":"HEAD","target":"/depts/11","status":404,"bytes":0,"took_us":12}`,
		`{"time":"2026-11-22T07:08:09.050Z","protocol":"redis","method":"GET","target":"depts:10","bytes":321,"took_us":12}`,
		`{"time":"2026-11-22T07:08:09.050Z","protocol":"http","method":"GET","target":"/long","target_bytes":2000,"status":200,"bytes":0,"took_us":1}`,
		`{"time":"2026-11-22T07:08:09.050Z","protocol":"http","method":"PUT","target":"/depts/1","status":405,"bytes":0,"took_us":1}`,
		`{"time":"2026-11-22T07:08:09.050Z","protocol":"http","status":400,"bytes":0,"took_us":1}`,
		`{"time":"2026-11-22T07:08:09.050Z","lost":7}`,
	}, "\n"))
	if got, want := sent(f), []string{"HEAD /depts/11 404", `GET /depts/10?a="%C3%A9 200`}; !slices.Equal(got, want) || f.Format != RequestLog {
		t.Errorf("%q of a %s, want %q", got, f.Format, want)
	}
	if got := times(f); !slices.Equal(got, []time.Duration{0, time.Millisecond}) {
		t.Errorf("%v", got)
	}
	want := map[string]uint64{OtherProtocol: 1, Truncated: 1, OtherMethod: 2, Lost: 7}
	if fmt.Sprint(f.Skipped) != fmt.Sprint(want) {
		t.Errorf("skipped %v, want %v", f.Skipped, want)
	}
}

// The request log that the gateway writes can be read.
func TestTheRequestLogOfTheGateway(t *testing.T) {
	path := filepath.Join(t.TempDir(), "requests.log")
	log, err := requestlog.Open(requestlog.Config{Path: path})
	if err != nil {
		t.Fatal(err)
	}
	at := time.Date(2026, 11, 22, 7, 8, 9, 0, time.UTC)
	for i, e := range []requestlog.Entry{
		{Protocol: "http", Method: "GET", Target: "/depts/1?a=\"\\\x01", Status: 400},
		{Protocol: "http", Method: "HEAD", Target: "/depts/2?\"\\\u00e9", Status: 404, Keys: 3, UserAgent: "x"},
		{Protocol: "redis", Method: "GET", Target: "/depts/3"},
		{Protocol: "http", Method: "GET", Target: "/" + strings.Repeat("x", 2000), Status: 200},
		{Protocol: "http", Method: "GET", Target: "/depts/4", Status: 200, Took: time.Second},
	} {
		e.Time = at.Add(time.Duration(i) * time.Second)
		log.Record(&e)
	}
	if err := log.Close(t.Context()); err != nil {
		t.Fatal(err)
	}
	f, err := Load(path)
	if err != nil {
		t.Fatal(err)
	}
	if got, want := sent(f), []string{`HEAD /depts/2?"\%C3%A9 404`, "GET /depts/4 200"}; !slices.Equal(got, want) || f.Format != RequestLog {
		t.Errorf("%q of a %s, want %q", got, f.Format, want)
	}
	if at := f.Trace(1).At(1); at != 3*time.Second {
		t.Errorf("the second request is sent after %v", at)
	}
	if f.Skipped[NoPath] != 1 || f.Skipped[OtherProtocol] != 1 || f.Skipped[Truncated] != 1 || len(f.Skipped) != 3 {
		t.Errorf("skipped %v", f.Skipped)
	}
}

// Mistakes are reported with line and column.
//
// mutant: replay-error-without-column
func TestMistakesInFiles(t *testing.T) {
	const fine = `192.0.2.7 - - [22/Nov/2026:07:08:10 +0100] "GET / HTTP/1.1" 200 135` + "\n"
	for text, want := range map[string]string{
		"/a\nb\n":                                   "f:2:1: expected a path such as /depts/1",
		"/a\n\n  /\u00e9 d":                         "f:3:5: expected a path",
		"/a\nhttp:///x":                             "f:2:8: expected a path",
		"/a\nGET /b":                                "f:2:1: expected a path",
		"/a\n/" + strings.Repeat("x", maxTarget):    "f:2:1: expected a path such as /depts/1, or a URL, of at most 8192 bytes",
		"/a\n/" + strings.Repeat("x", maxLine):      "f:2:1: a line of more than 65535 bytes",
		fine + "nothing":                            "f:2:1: no time in brackets",
		fine + "a [x":                               "f:2:3: a time without a closing bracket",
		fine + "a [x] ":                             `f:2:4: the time "x"; expected one such as`,
		fine + "a [22/Nov/1026:07:08:10 +0100] ":    `f:2:4: the time`,
		fine + `a [22/Nov/2026:07:08:10 +0100] GET`: "f:2:31: expected the request after the time",
		fine + `a [22/Nov/2026:07:08:10 +0100] "GET / HTTP/1.1\" 200 1`: "f:2:32: a request without a closing quotation mark",
		fine + `a [22/Nov/2026:07:08:10 +0100] "GET / HTTP/1.1" 20`:     "f:2:48: expected the status",
		fine + `a [22/Nov/2026:07:08:10 +0100] "GET / HTTP/1.1" 2000`:   "f:2:48: expected the status",
		fine + `a [22/Nov/2026:07:08:10 +0100] "GET / HTTP/1.1" x00`:    "f:2:48: expected the status",
		`{"time": 7}`:      "f:1:10: json:",
		`{"time": "x"}`:    `f:1:2: the time "x"; expected one such as`,
		`{"tim": "x"}`:     `f:1:1: the time ""`,
		"{\"lost\": 1,\n}": "f:1:11: unexpected end of JSON input; expected a line of the request log",
		`{"time":"2026-11-22T07:08:09Z","status":2000}`: "f:1:32: status 2000; expected three digits",
		"{}x":                                   "f:1:3: invalid character 'x'",
		"":                                      "f: no request that can be sent again",
		"# nothing":                             "f: no request that can be sent again",
		strings.Replace(fine, "GET", "POST", 1): "f: no request that can be sent again",
	} {
		_, err := read("f", strings.NewReader(text))
		if err == nil || !strings.HasPrefix(err.Error(), want) {
			t.Errorf("%.60q: %v, want %q", text, err, want)
		}
		if at, ok := errors.AsType[*mix.FileError](err); ok != !strings.HasPrefix(want, "f: ") {
			t.Errorf("%.60q: %+v", text, at)
		}
	}
}

// A file that exceeds the limits is refused.
//
// mutant: replay-unbounded
func TestFilesAreBounded(t *testing.T) {
	for _, text := range []string{"/a\n/b\n/c\n/d\n", strings.Repeat(`a [22/Nov/2026:07:08:10 +0100] "GET / HTTP/1.1" 200 1`+"\n", 4)} {
		r := &reader{name: "f", file: new(File), most: 3}
		if _, err := r.read(strings.NewReader(text)); err == nil || !strings.HasPrefix(err.Error(), "f:4:1: more than 3 requests") {
			t.Errorf("%v", err)
		}
	}
}

func TestLoad(t *testing.T) {
	path := filepath.Join(t.TempDir(), "paths")
	if err := os.WriteFile(path, []byte("/a\n"), 0o600); err != nil {
		t.Fatal(err)
	}
	if f, err := Load(path); err != nil || f.Len() != 1 || f.Name != "paths" {
		t.Errorf("%+v, %v", f, err)
	}
	if _, err := Load(path + ".none"); !errors.Is(err, os.ErrNotExist) {
		t.Errorf("%v", err)
	}
}

// FuzzRead checks that no file leads to a request that is not a single line with a path, or to
// decreasing times.
func FuzzRead(f *testing.F) {
	f.Add([]byte("/a\nhttp://b/c?d#e\n"))
	f.Add([]byte(`a [22/Nov/2026:07:08:10 +0100] "GET /\x41 HTTP/1.1" 200 1`))
	f.Add([]byte(`{"time":"2026-11-22T07:08:09.050Z","method":"GET","target":"/depts/1","status":405}`))
	f.Fuzz(func(t *testing.T, text []byte) {
		file, err := read("f", bytes.NewReader(text))
		if err != nil {
			return
		}
		last := time.Duration(0)
		for i := range file.Len() {
			target := file.Request(i).Target
			if len(target) == 0 || target[0] != '/' || bytes.ContainsFunc(target, func(r rune) bool { return r <= ' ' || r >= 0x7f }) {
				t.Errorf("target %q", target)
			}
			if at := file.Trace(1).At(i); at < last {
				t.Errorf("request %d at %v after %v", i, at, last)
			} else {
				last = at
			}
		}
	})
}
