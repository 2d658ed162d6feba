package jsontext

import "testing"

// Checking words of 8 bytes has the same result as checking single bytes, for any position of the
// byte and any bytes after it.
func TestEndOfPlain(t *testing.T) {
	for n := range 25 {
		for at := range n {
			for c := range 256 {
				for _, rest := range []byte{'a', ' ', 0, 0x7f, 0x80, 0xff, '"', '\\', '#', ']'} {
					s := make([]byte, n)
					for i := range s {
						s[i] = 'a'
						if i > at {
							s[i] = rest
						}
					}
					s[at] = byte(c)
					want := 0
					for want < n && plain[s[want]] {
						want++
					}
					for from := range 3 {
						if from > want { // bytes before from are irrelevant
							continue
						}
						if got := EndOfPlain(s, from); got != want {
							t.Fatalf("%q from %d: %d, want %d", s, from, got, want)
						}
					}
				}
			}
		}
	}
}
