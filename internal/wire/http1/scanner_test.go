package http1

import (
	"strings"
	"testing"
	"unsafe"
)

// testLimit is longer than the heads of most tests.
const testLimit = 16 << 10

func scanOne(in string) (h *Head, n int, v Verdict, why Reason) {
	h = new(Head)
	n, v, why = new(Scanner).Scan([]byte(in), testLimit, h)
	return h, n, v, why
}

func TestPipelinedHeads(t *testing.T) {
	in := []byte("GET /1 HTTP/1.1\r\nHost: a\r\nX-Forwarded-For: 1\r\nX-Forwarded-For: 2\r\nRange: bytes=0-\r\nAuthorization: x\r\n\r\n" +
		"HEAD /2 HTTP/1.0\r\n\r\n" +
		"GET /3 HTTP/1.1\r\nhost:b\r\nConnection: close\r\n\r\nrest")
	var s Scanner
	var h Head
	for _, want := range []string{
		`GET /1 1.1 keep Host="a" Authorization="x" X-Forwarded-For="1" X-Forwarded-For="2" ranged`,
		`HEAD /2 1.0 close`,
		`GET /3 1.1 close Host="b"`,
	} {
		n, v, why := s.Scan(in, testLimit, &h)
		if v != Done || why != NotHandedOver {
			t.Fatalf("Scan(%q) = %d, %v, %v, want Done", in, n, v, why)
		}
		if got := describe(&h); got != want {
			t.Errorf("got %s, want %s", got, want)
		}
		in = in[n:]
	}
	if _, v, why := s.Scan(in, testLimit, &h); v != Other || why != ReasonMethod {
		t.Errorf("the rest is %v, %v, want Other, method", v, why)
	}
	if s != (Scanner{}) {
		t.Errorf("the scanner is %+v after Other, want the zero value", s)
	}
}

// A result that cannot change is reported immediately, because the peer may be waiting for a
// response.
func TestEarliestVerdict(t *testing.T) {
	for _, c := range []struct {
		in  string
		why Reason
	}{
		{"P", ReasonMethod},
		{"g", ReasonMethod},
		{"\x16", ReasonMethod},
		{"GEX", ReasonMethod},
		{"HEAR", ReasonMethod},
		{"OPTIONX", ReasonMethod},
		{"\r", ReasonLineEnd},
		{"\n", ReasonLineEnd},
		{"GET\n", ReasonLineEnd},
		{"GET / HTTP/1.1\n", ReasonLineEnd},
		{"GET / HTTP/1.1\r\nHost: a\n", ReasonLineEnd},
		{"GET / HTTP/1.1\r\nHost: a\r\n\n", ReasonLineEnd},
		{"GET / HTTP/1.1\r\nContent-Length: 1\r\n", ReasonBody},
		{"GET / HTTP/2.0\r\n", ReasonVersion},
	} {
		if _, _, v, why := scanOne(c.in); v != Other || why != c.why {
			t.Errorf("%q: %v, %v, want Other, %v", c.in, v, why, c.why)
		}
		if _, _, v, why := scanOne(c.in[:len(c.in)-1]); v != More || why != NotHandedOver {
			t.Errorf("%q: %v, %v, want More", c.in[:len(c.in)-1], v, why)
		}
		checkSplit(t, []byte(c.in), testLimit, func() int { return 1 })
	}
}

func TestLimit(t *testing.T) {
	const head = "GET / HTTP/1.1\r\nHost: a\r\n\r\n"
	for limit := -1; limit <= len(head)+1; limit++ {
		for seen := range len(head + "xx") {
			in := (head + "xx")[:seen]
			n, v, why := new(Scanner).Scan([]byte(in), limit, new(Head))
			wantN, want, wantWhy := 0, More, NotHandedOver
			switch {
			case limit >= len(head) && seen >= len(head):
				wantN, want = len(head), Done
			case seen >= limit:
				want, wantWhy = Other, ReasonTooLarge
			}
			if n != wantN || v != want || why != wantWhy {
				t.Errorf("Scan(%q, %d) = %d, %v, %v, want %d, %v, %v", in, limit, n, v, why, wantN, want, wantWhy)
			}
		}
	}
}

func TestReset(t *testing.T) {
	var s Scanner
	var h Head
	if _, v, _ := s.Scan([]byte("GET /a HTTP/1.1\r\nHost: a\r\nConn"), testLimit, &h); v != More {
		t.Fatalf("got %v, want More", v)
	}
	s.Reset()
	in := []byte("HEAD /b HTTP/1.1\r\nHost: b\r\n\r\n")
	n, v, why := s.Scan(in, testLimit, &h)
	if n != len(in) || v != Done || describe(&h) != `HEAD /b 1.1 keep Host="b"` {
		t.Errorf("got %d, %v, %v, %s", n, v, why, describe(&h))
	}
}

// A caller that passes no more bytes than before, or fewer, breaks the contract, but must not crash
// the process.
func TestNoMoreBytesThanBefore(t *testing.T) {
	const head = "GET /a HTTP/1.1\r\nHost: a\r\nAccept: */*\r\n\r\n"
	for first := range len(head) {
		for second := range first + 1 {
			var s Scanner
			var h Head
			s.Scan([]byte(head[:first]), testLimit, &h)
			s.Scan([]byte(head[:second]), testLimit, &h)
			if n, v, _ := s.Scan([]byte(head), testLimit, &h); v != Done || n != len(head) || describe(&h) != `GET /a 1.1 keep Host="a"` {
				t.Fatalf("after %d and %d bytes: %d, %v, %s", first, second, n, v, describe(&h))
			}
		}
	}
}

func TestReasonWords(t *testing.T) {
	seen := map[string]bool{}
	for r := range ReasonCount {
		word := r.String()
		if word == "" || word == "unknown" || seen[word] || strings.Trim(word, "abcdefghijklmnopqrstuvwxyz-") != "" {
			t.Errorf("reason %d is %q", r, word)
		}
		seen[word] = true
	}
	if got := ReasonCount.String(); got != "unknown" {
		t.Errorf("got %q, want unknown", got)
	}
}

// Every connection has one of each.
func TestSizes(t *testing.T) {
	if n := unsafe.Sizeof(Scanner{}); n > 32 {
		t.Errorf("a Scanner has %d bytes, want at most 32", n)
	}
	if n := unsafe.Sizeof(Head{}); n > 576 {
		t.Errorf("a Head has %d bytes, want at most 576", n)
	}
}

func noAllocs(t *testing.T, name string, f func()) {
	t.Helper()
	if n := testing.AllocsPerRun(100, f); n != 0 {
		t.Errorf("%s: %v allocations, want none", name, n)
	}
}

func TestScanDoesNotAllocate(t *testing.T) {
	var s Scanner
	h := new(Head)
	for _, c := range tricks {
		in := []byte(c.in)
		noAllocs(t, c.name, func() { s.Scan(in, testLimit, h); s.Reset() })
		noAllocs(t, c.name+" in two pieces", func() {
			s.Scan(in[:len(in)/2], testLimit, h)
			s.Scan(in, testLimit, h)
			s.Reset()
		})
	}
}
