package jsontext

import "testing"

// Words of 8 bytes give the same as single bytes, wherever the byte lies and whatever follows it.
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
						if from > want { // the bytes before from do not matter
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
