package pipe

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// stingy is a protocol whose scanner knows only a part of the length at a time, like one that scans an array of
// long strings.
type stingy struct{ toyFIFO }

func (stingy) NewScanner() Scanner { return stingyScanner{} }

type stingyScanner struct{ toyScanner }

func (s stingyScanner) Scan(b []byte) (Frame, error) {
	f, err := s.toyScanner.Scan(b)
	if f.Verdict == More {
		f.Len = min(f.Len, len(b)+directReply+7)
	}
	return f, err
}

// Replies of every size, mixed with small ones and pushes, arrive whole and in order, however they are split on
// the way.
func TestLargeRepliesArriveWhole(t *testing.T) {
	r := testkit.Rand(t)
	for _, protocol := range []Protocol{toyFIFO{}, stingy{}} {
		for _, chunk := range []int{0, 1_000, minRead, 100_000} {
			s := startToy(t, &toyServer{faults: func(int) faults { return faults{chunk: chunk, room: 4 << 20} }, handle: func(r toyRequest) {
				var n int
				fmt.Sscanf(r.body, "r%d", &n)
				if n%3 == 0 {
					r.reply("p" + strings.Repeat("push", n))
				}
				r.reply(sizedBody(n))
			}})
			pushes := 0
			e := s.engine(func(c *Config) {
				c.Protocol = protocol
				c.OnPush = func(_ Pin, frame []byte) { pushes += len(frame) }
			})
			var cs []*Call
			var sizes []int
			pushed := 0
			for range 30 {
				n := []int{10, 5_000, directReply + r.IntN(2*minRead), 70_000, growStep + r.IntN(growStep)}[r.IntN(5)]
				if sizes = append(sizes, n); n%3 == 0 {
					pushed += 4 + 1 + 4*n
				}
				c := s.newCall(e, fmt.Sprintf("r%d,", n))
				if err := e.Start(t.Context(), c); err != nil {
					t.Fatal(err)
				}
				cs = append(cs, c)
			}
			for i, c := range cs {
				if err := c.Wait(); err != nil {
					t.Fatal(err)
				}
				if got := s.replyOf(c); got != sizedBody(sizes[i]) {
					t.Fatalf("%T in chunks of %d: reply %d has %d bytes, want %d, or its bytes are wrong", protocol, chunk, i, len(got), sizes[i])
				}
				c.Release()
			}
			checkBalanced(t, e)
			if e.Close(); pushes != pushed {
				t.Errorf("%T in chunks of %d: %d bytes of pushes, want %d", protocol, chunk, pushes, pushed)
			}
		}
	}
}

// Of a large reply, only the bytes that arrived together with its length are copied, even if many are in flight
// and small ones came before.
func TestLargeRepliesAreNotCopied(t *testing.T) {
	const n, large = 200, 64 << 10
	for _, tickets := range []bool{false, true} {
		direct, through := copiedFor(t, tickets, 0, n, large), copiedFor(t, tickets, 1<<30, n, large)
		t.Logf("tickets %v: of each reply of %d bytes, %d are copied, and %d without direct reads", tickets, large, direct/n, through/n)
		if direct > 2<<20+n*2*minRead {
			t.Errorf("tickets %v: %d bytes were copied for %d replies of %d, want at most %d each", tickets, direct, n, large, 2*minRead)
		}
	}
}

// copiedFor returns how many bytes are copied for n large replies that arrive after small ones, with a read
// buffer that has grown.
func copiedFor(t *testing.T, tickets bool, directFrom, n, large int) int {
	t.Helper()
	s := startToy(t, &toyServer{network: "unix", tickets: tickets, handle: func(r toyRequest) {
		if r.body == "rlarge" {
			r.reply("r" + strings.Repeat("x", large-1))
			return
		}
		r.reply(r.body)
	}})
	e := s.engine(func(c *Config) { c.choices.SoloAfter, c.choices.DirectReply = -1, directFrom })
	sock := socketAt(e, 0)
	for _, batch := range []struct {
		body string
		n    int
	}{{"r" + strings.Repeat("small", 100), 2_000}, {"rlarge", n}} {
		var cs []*Call
		for range batch.n {
			cs = append(cs, s.newCall(e, batch.body))
		}
		if err := e.DoAll(t.Context(), cs); err != nil {
			t.Fatal(err)
		}
		for _, c := range cs {
			c.Release()
		}
	}
	checkBalanced(t, e)
	e.Close()
	return sock.in.copied
}
