package resp

import "testing"

func TestSmoke(t *testing.T) {
	for _, in := range []string{"+OK\r\n", "$3\r\nabc\r\n", "*2\r\n:1\r\n*1\r\n$-1\r\n", "%1\r\n+a\r\n,1.5\r\n", "*?\r\n:1\r\n.\r\n", "$?\r\n;3\r\nabc\r\n;2\r\nde\r\n;0\r\n", "|1\r\n+k\r\n+v\r\n:5\r\n", ">2\r\n+a\r\n:1\r\n", "=7\r\ntxt:abc\r\n"} {
		var s Scanner
		n, v, err := s.Scan([]byte(in))
		val, rest, perr := Parse([]byte(in), Limits{})
		t.Log(n == len(in), v, err, val, rest, perr)
		d := NewDecoder([]byte(in))
		if err := d.Skip(); err != nil || d.Offset() != n || n != len(in) || len(rest) != 0 {
			t.Errorf("%q: %v %d", in, err, d.Offset())
		}
	}
}
