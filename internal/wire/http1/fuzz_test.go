package http1

import (
	"bufio"
	"bytes"
	"math/rand/v2"
	"net/http"
	"strings"
	"testing"
)

// seeds returns all heads of the tables that are short enough for a fuzzer.
func seeds() (all [][]byte) {
	for _, c := range tricks {
		if len(c.in) < 2048 {
			all = append(all, []byte(c.in))
		}
	}
	for _, c := range clients {
		all = append(all, []byte(c.in))
	}
	return all
}

// FuzzAgainstNetHTTP checks that every request that is accepted has the same meaning in net/http.
func FuzzAgainstNetHTTP(f *testing.F) {
	for _, in := range seeds() {
		f.Add(in)
	}
	f.Fuzz(func(t *testing.T, in []byte) {
		h := dirtyHead()
		if n, v, _ := new(Scanner).Scan(in, testLimit, h); v == Done {
			checkAgainstNetHTTP(t, in[:n:n], h)
		}
	})
}

// FuzzParts is like FuzzAgainstNetHTTP, for heads that are correct except for one fuzzed
// position of each kind. The parameter which selects fields that have a meaning.
func FuzzParts(f *testing.F) {
	f.Add("depts/1?x=%zz", true, "a:80", "x", uint16(0x1111), "\t192.0.2.1, x ", "connection", " close")
	f.Add("/b/%41", false, "[::1]", "", uint16(0x2c2c), "W/\"\xff\"", "uSER-aGENT", "")
	for i := 1; i < len(fieldNames); i++ {
		f.Add("", i%2 == 0, "h", "keep-alive", uint16(i<<8|i), "x", strings.ToUpper(fieldNames[len(fieldNames)-i]), "y")
	}
	f.Fuzz(func(t *testing.T, path string, old bool, host, value1 string, which uint16, value2, name, value3 string) {
		version := "1.1"
		if old {
			version = "1.0"
		}
		known := func(i uint16) string {
			name := fieldNames[1+int(i&0x7f)%(len(fieldNames)-1)]
			if i&0x80 != 0 {
				return strings.ToUpper(name)
			}
			return name
		}
		in := []byte("GET /" + path + " HTTP/" + version + "\r\nHost: " + host + "\r\n" +
			known(which) + ":" + value1 + "\r\n" + known(which>>8) + ":" + value2 + "\r\n" +
			name + ":" + value3 + "\r\n\r\n")
		h := dirtyHead()
		if n, v, _ := new(Scanner).Scan(in, testLimit, h); v == Done {
			checkAgainstNetHTTP(t, in[:n:n], h)
		}
	})
}

// FuzzSplit checks that the result is the same however a stream is split into reads: the heads,
// their contents and the reason for the end.
func FuzzSplit(f *testing.F) {
	for i, in := range seeds() {
		f.Add(in, uint64(i), uint16(testLimit))
		f.Add(append(bytes.Clone([]byte(shortHead)), in...), uint64(i), uint16(100+i))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64, limit uint16) {
		r := rand.New(rand.NewPCG(seed, 0))
		most := 1 + r.IntN(40)
		checkSplit(t, data, int(limit), func() int { return 1 + r.IntN(most) })
		if len(data) < 2048 {
			checkSplit(t, data, int(limit), func() int { return 1 })
		}
	})
}

// FuzzAnswer checks that no field value gets out of its line, and that net/http clients can read
// what was written.
func FuzzAnswer(f *testing.F) {
	f.Add(200, 1, "application/json", int64(784111777))
	f.Add(599, 0, "a\r\nSet-Cookie: x\n\n\x00", int64(-1))
	f.Fuzz(func(t *testing.T, status, minor int, value string, second int64) {
		b := AppendStatus(nil, minor&1, status)
		b = AppendField(b, "X-Value", value)
		b = AppendDate(append(b, "Date: "...), second)
		b = append(b, "\r\nContent-Length: 0\r\n\r\n"...)
		if n := strings.Count(string(b), "\r\n"); n != 5 {
			t.Fatalf("%q: %d lines, want 5", b, n)
		}
		want := strings.Trim(strings.NewReplacer("\r", " ", "\n", " ", "\x00", " ").Replace(value), " \t")
		for _, c := range []byte(want) {
			if c < ' ' && c != '\t' || c == 0x7f {
				return // a mistake of the caller, which net/http rejects
			}
		}
		rsp, err := http.ReadResponse(bufio.NewReader(bytes.NewReader(b)), nil)
		if err != nil {
			t.Fatalf("%q: %v", b, err)
		}
		_ = rsp.Body.Close() // the response has no body
		if got := rsp.Header.Get("X-Value"); got != want || rsp.ProtoMinor != minor&1 {
			t.Fatalf("%q: value %q in %s, want %q", b, got, rsp.Proto, want)
		}
		if _, err := http.ParseTime(rsp.Header.Get("Date")); err != nil {
			t.Fatalf("%q: %v", b, err)
		}
	})
}
