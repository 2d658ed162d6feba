package http1

import (
	"bytes"
	"strings"
	"testing"
)

// checkAgain scans the head at the start of in, and then one with another target and the same or
// different lines. If Again recognizes the second head, Scan must return the same for it.
func checkAgain(t *testing.T, in, next []byte, limit int) (recognized bool) {
	t.Helper()
	h := dirtyHead()
	if _, v, _ := new(Scanner).Scan(in, testLimit, h); v != Done {
		return false
	}
	before := describe(h)
	n, ok := Again(next, limit, h)
	if !ok {
		if got := describe(h); got != before {
			t.Fatalf("%q after %q was not recognized, but the head has changed from %s to %s", next, in, before, got)
		}
		return false
	}
	want := dirtyHead()
	wantN, v, why := new(Scanner).Scan(next, limit, want)
	if v != Done || n != wantN || describe(h) != describe(want) {
		t.Fatalf("%q after %q: Again says %d, %s; Scan says %d, %v, %v, %s", next, in, n, describe(h), wantN, v, why, describe(want))
	}
	// A head that was recognized can be used like one that was scanned.
	if n, ok := Again(next, limit, h); !ok || n != wantN || describe(h) != describe(want) {
		t.Fatalf("%q twice: %d, %v, %s", next, n, ok, describe(h))
	}
	return true
}

// targets are possible replacements for the target of a request line.
var targets = []string{"/", "/2", "/depts/10002", "/%41?x=%zz", "/a?b", "/%zz", "/a b", "/a#b", "*", "", "//", "/\x7f", "/\x80",
	"/a HTTP/1.0\r\nHost: b\r\n\r\nGET /b", "http://a/", "/" + strings.Repeat("x", 300)}

func TestAgainSaysWhatScanSays(t *testing.T) {
	recognized := 0
	for _, in := range seeds() {
		_, rest, ok := bytes.Cut(in, []byte(" "))
		if !ok {
			continue
		}
		_, rest, ok = bytes.Cut(rest, []byte(" "))
		if !ok {
			continue
		}
		for _, method := range []string{"GET ", "HEAD ", "OPTIONS ", "get ", "POST "} {
			for _, target := range targets {
				next := []byte(method + target + " " + string(rest))
				for _, limit := range []int{testLimit, len(next), len(next) - 1, 20} {
					if checkAgain(t, in, next, limit) {
						recognized++
					}
				}
				for _, other := range seeds()[:20] {
					checkAgain(t, other, next, testLimit)
				}
			}
		}
	}
	if recognized < 100 {
		t.Errorf("%d heads were recognized, want more", recognized)
	}
}

func TestAgainNeedsTheWholeHead(t *testing.T) {
	h := new(Head)
	if _, v, _ := new(Scanner).Scan([]byte(shortHead), testLimit, h); v != Done {
		t.Fatal(v)
	}
	for i := range len(shortHead) {
		if n, ok := Again([]byte(shortHead[:i]), testLimit, h); ok {
			t.Errorf("%d of %d bytes are recognized as a head of %d", i, len(shortHead), n)
		}
	}
	for _, limit := range []int{len(shortHead) - 1, 0, -1} {
		if _, ok := Again([]byte(shortHead), limit, h); ok {
			t.Errorf("a head of %d bytes is recognized, although %d are allowed", len(shortHead), limit)
		}
	}
	if n, ok := Again([]byte(shortHead+"GET"), testLimit, h); !ok || n != len(shortHead) {
		t.Errorf("the same head again: %d, %v", n, ok)
	}
	if _, ok := Again([]byte(shortHead), testLimit, new(Head)); ok {
		t.Error("a head is recognized without one before it")
	}
	if _, v, _ := new(Scanner).Scan([]byte(strings.Replace(shortHead, "GET", "HEAD", 1)), testLimit, h); v != Done {
		t.Fatal(v)
	}
	if _, ok := Again([]byte(shortHead), testLimit, h); ok {
		t.Error("a GET is recognized after a HEAD")
	}
	in := []byte(shortHead)
	if _, v, _ := new(Scanner).Scan(in, testLimit, h); v != Done {
		t.Fatal(v)
	}
	noAllocs(t, "Again", func() { Again(in, testLimit, h) })
}

// FuzzAgain checks that Scan accepts every head that Again recognizes.
func FuzzAgain(f *testing.F) {
	for i, in := range seeds() {
		f.Add(in, in, uint16(testLimit))
		f.Add(in, []byte(shortHead), uint16(60+i))
	}
	f.Fuzz(func(t *testing.T, in, next []byte, limit uint16) {
		checkAgain(t, in, next, int(limit))
		if first, _, ok := bytes.Cut(next, []byte(" ")); ok {
			if _, rest, ok := bytes.Cut(in, []byte(" HTTP/1.")); ok {
				checkAgain(t, in, []byte(string(first)+" HTTP/1."+string(rest)), int(limit))
			}
		}
	})
}
