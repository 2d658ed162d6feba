package resp

import (
	"strings"
	"testing"
)

// A bulk string can be scanned without its body, wherever it was split, and what follows it is
// scanned as usual.
func TestBodyIsSkipped(t *testing.T) {
	const body = 100
	message := "$100\r\n" + strings.Repeat("b", body) + "\r\n"
	for at := range len(message) {
		s := NewScanner(Limits{})
		if _, v, err := s.Scan([]byte(message[:at])); v != More || err != nil {
			t.Fatalf("%d bytes: %v, %v", at, v, err)
		}
		from, n := s.Body()
		if at < 6 {
			if n != 0 {
				t.Errorf("%d bytes: a body of %d", at, n)
			}
			continue
		}
		if from != 6 || n != body {
			t.Fatalf("%d bytes: a body of %d at %d", at, n, from)
		}
		s.SkipBody()
		for _, part := range []string{"", "\r"} {
			if n, v, err := s.Scan([]byte(part)); v != More || n != len(part)+max(1, 2-len(part)) || err != nil {
				t.Fatalf("%q behind the body: %d, %v, %v", part, n, v, err)
			}
		}
		if n, v, err := s.Scan([]byte("\r\n+OK\r\n")); n != 2 || v != Done || err != nil {
			t.Fatalf("the tail: %d, %v, %v", n, v, err)
		}
		if n, v, err := s.Scan([]byte("+OK\r\n")); n != 5 || v != Done || err != nil {
			t.Fatalf("the next message: %d, %v, %v", n, v, err)
		}
	}
	s := NewScanner(Limits{})
	s.Scan([]byte(message[:50]))
	s.SkipBody()
	if _, _, err := s.Scan([]byte("b\r\n")); err == nil {
		t.Error("a body that is too long is accepted")
	}
}

// Only a message that is a single bulk string has a body that can be skipped.
func TestOtherMessagesHaveNoBody(t *testing.T) {
	for _, message := range []string{
		"", "$", "$100", "$-1\r", "!100\r\nERR", "=100\r\ntxt:", "*1\r\n$100\r\nb", "%1\r\n$1\r\nk\r\n$100\r\nb", ">2\r\n$1\r\nk\r\n$100\r\nb",
		"$?\r\n;100\r\nb", "+OK", "|1\r\n+k\r\n$100\r\nb",
	} {
		s := NewScanner(Limits{})
		if message != "" {
			if _, v, err := s.Scan([]byte(message)); v != More || err != nil {
				t.Fatalf("%q: %v, %v", message, v, err)
			}
		}
		if from, n := s.Body(); n != 0 {
			t.Errorf("%q: a body of %d at %d", message, n, from)
		}
	}
}
