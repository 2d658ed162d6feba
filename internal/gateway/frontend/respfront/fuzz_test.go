package respfront

import (
	"bytes"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// FuzzSession: for any bytes, in any pieces, the session neither panics nor hangs, and
// all of its answers are RESP.
func FuzzSession(f *testing.F) {
	for _, seed := range []string{
		"GET depts:1\r\nMGET depts:1 depts:0 orders:a:1\r\nHELLO 3\r\nGET depts:0\r\nRESET\r\n",
		command1("GET", "depts:1") + command1("MGET", "depts:2", "nothing:1") + command1("HELLO", "3", "AUTH", "web", webPassword, "SETNAME", "x"),
		command1("COMMAND", "DOCS", "get", "client|id") + command1("COMMAND") + command1("INFO") + command1("CLIENT", "LIST"),
		command1("GETRANGE", "depts:1", "-3", "-1") + command1("CONFIG", "GET", "*[") + command1("AUTH", "nope"),
		"*1\r\n$4\r\nPING\r\n*-1\r\n*0\r\n\r\nFOO 'a\\'b' \"\\xff\\n\"\r\n*2\r\n$3\r\nGET\r\n:1\r\n",
		"POST / HTTP/1.1\r\n", "GET / HTTP/1.1\r\nHost: x\r\n\r\n", "*16385\r\n$1048577\r\n", "GET \"depts:%zz\"\r\n",
		strings.Repeat("AUTH x\r\n", 12), "CLIENT SETINFO lib-name x\r\nCLIENT SETNAME y\r\nCLIENT INFO\r\nQUIT\r\nPING\r\n",
	} {
		f.Add([]byte(seed), uint16(7), true)
		f.Add([]byte(seed), uint16(0), false)
	}
	fixtures := map[bool]*fixture{
		false: newFixture(f, echo, Config{Users: users()}),
		true:  newFixture(f, echo, Config{Users: users(), RequireAuth: true}),
	}
	f.Fuzz(func(t *testing.T, data []byte, piece uint16, login bool) {
		fx := fixtures[login]
		x := fx.session()
		defer x.close()
		var answers []byte
		c := &fakeConn{at: fx.cache.Now(), most: 16}
		for from, to := 0, 0; to < len(data) && !c.ended && c.aborted == nil; {
			to = len(data)
			if piece > 0 {
				to = min(from+int(piece), len(data))
				piece *= 2 // a larger piece may suffice
			}
			for full := true; full && from < to; {
				// A copy, so that reading beyond the received bytes is detected.
				n := x.data(c, bytes.Clone(data[from:to]))
				full = c.Full() && !c.ended && c.aborted == nil
				if n < 0 || n > to-from || full && n == 0 {
					t.Fatalf("%d bytes consumed of %d, full %v", n, to-from, full)
				}
				answers = append(answers, c.take()...)
				from += n
			}
			if to-from > maxRequest {
				t.Fatalf("%d bytes wait for the end of a command", to-from)
			}
		}
		s := resp.NewScanner(resp.Limits{})
		for len(answers) > 0 {
			n, v, err := s.Scan(answers)
			if err != nil || v != resp.Done {
				t.Fatalf("the answer is no RESP at %.200q: verdict %v, error %v", answers, v, err)
			}
			if _, _, err := resp.Parse(answers[:n], resp.Limits{}); err != nil {
				t.Fatalf("the answer %.200q cannot be read: %v", answers[:n], err)
			}
			answers = answers[n:]
		}
	})
}
