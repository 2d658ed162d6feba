package redis

import (
	"fmt"
	"io"
	"math/rand/v2"
	"net"
	"os"
	"slices"
	"strings"
	"testing"
	"time"
)

// piecewise is a connection that returns bytes in pieces, is sometimes silent, and accepts all
// writes.
type piecewise struct {
	net.Conn
	data   []byte
	piece  func() int // number of bytes in the next piece; 0 for a timeout
	silent int
}

func (p *piecewise) Read(b []byte) (int, error) {
	if len(p.data) == 0 {
		return 0, io.EOF
	}
	n := min(p.piece(), len(p.data), len(b))
	if n == 0 {
		if p.silent++; p.silent < 3 {
			return 0, os.ErrDeadlineExceeded
		}
		n = 1 // 0 bytes would close the connection
	}
	p.silent = 0
	copy(b, p.data[:n])
	p.data = p.data[n:]
	return n, nil
}

func (p *piecewise) Write(b []byte) (int, error)      { return len(b), nil }
func (p *piecewise) Close() error                     { return nil }
func (p *piecewise) SetReadDeadline(time.Time) error  { return nil }
func (p *piecewise) SetWriteDeadline(time.Time) error { return nil }

// fuzzMost bounds the messages that a subscription keeps.
const fuzzMost = 1000

var fuzzLimits = Limits{Bulk: 500, Line: 200, Elements: 40, Depth: 6, Streamed: 500, Frame: 4000}

// heard returns what two subscriptions receive when a server sends data, as text. If sharded is
// set, the server is a node of a cluster, and they have channels of shards.
func heard(t *testing.T, data []byte, piece func() int, sharded bool) string {
	k := routerOfOne(Options{SubscriptionBytes: fuzzMost, StallTimeout: -1, Limits: fuzzLimits})
	n := &node{opts: k.core.opts, aside: k.core.opts}
	h := newHub(k.core, n.fail, nil)
	defer h.cancel()
	topics := []Topics{{Channels: []string{"a", "b"}, Patterns: []string{"a*"}}, {Channels: []string{"a"}, Shards: []string{"s"}}}
	most := 6   // five topics, requested one by one, and a PING
	var l *line // it is not started: this test reads from it
	if sharded {
		n = k.owner(0)
		n.aside = k.core.opts
		k.sharded, h.shards, h.placing = true, k, true
		topics = []Topics{{Shards: []string{"a", "b", "{a}2"}}, {Shards: []string{"a", "s", "t"}}}
		most = 11 // each with ASKING
		l = h.newLine(n)
		h.lines[n] = l
	} else {
		l = h.newLine(nil)
		h.main = l
	}
	conn := &exclusive{conn: &piecewise{data: data, piece: piece}, node: n, scanner: newProtocol(&k.core.opts).NewScanner().(*scanner).Scanner}
	l.conn = conn
	subs := make([]*Subscription, 2)
	for i := range topics {
		subs[i] = &Subscription{hub: h, wake: make(chan struct{}, 1), topics: make(map[topicKey]struct{})}
		if _, err := h.add(subs[i], topics[i].keys()); err != nil {
			t.Fatal(err)
		}
	}
	var words strings.Builder
	for {
		frame, err := l.next(conn)
		if err != nil {
			fmt.Fprintln(&words, err)
			break
		}
		l.hear(frame)
		for _, s := range subs {
			checkSubscription(t, s)
		}
		if len(l.asked) > most {
			t.Fatalf("%d commands await an answer", len(l.asked))
		}
	}
	h.goroutines.Wait()
	if most := 2*len(data) + growBy + exclusiveKept; cap(conn.in) > most {
		t.Fatalf("a buffer of %d bytes for %d", cap(conn.in), len(data))
	}
	for _, s := range subs {
		keys := make([]string, 0, len(s.topics))
		for key := range s.topics {
			keys = append(keys, fmt.Sprint(key, h.topics[key].inForce, h.topics[key].line == l))
		}
		slices.Sort(keys)
		fmt.Fprintln(&words, keys, s.awaiting, s.gap, s.queue, s.failed)
	}
	l.lost()
	for _, s := range subs {
		checkSubscription(t, s)
	}
	return words.String()
}

// checkSubscription checks what must hold for a subscription whatever the server sends.
func checkSubscription(t *testing.T, s *Subscription) {
	t.Helper()
	bytes, awaiting, longest := 0, 0, 0
	for i, m := range s.queue {
		bytes += m.cost()
		longest = max(longest, m.cost())
		kind, name := ofChannels, m.Channel
		switch {
		case m.Shard:
			kind = ofShards
		case m.Pattern != "":
			kind, name = ofPatterns, m.Pattern
		}
		if _, listens := s.topics[topicKey{kind, name}]; !listens && m.Kind == Published && s.failed == nil && len(s.topics) == 3 {
			t.Fatalf("message %d does not belong to the subscription: %+v", i, m)
		}
	}
	for key := range s.topics {
		if topic := s.hub.topics[key]; topic == nil {
			t.Fatalf("%v is unknown", key)
		} else if !topic.inForce && !topic.sharded {
			awaiting++
		}
	}
	if bytes != s.bytes || bytes > max(fuzzMost, longest)+messageCost || awaiting != s.awaiting {
		t.Fatalf("%d bytes, counted %d; %d topics not confirmed, counted %d", bytes, s.bytes, awaiting, s.awaiting)
	}
}

// FuzzSubscription: whatever bytes a server sends to a connection of subscriptions, and however
// they are split into reads, the messages are the same, and they are bounded.
func FuzzSubscription(f *testing.F) {
	shards := strings.NewReplacer("subscribe", "ssubscribe").Replace(">3\r\n+subscribe\r\n+a\r\n:1\r\n>3\r\n+subscribe\r\n+b\r\n:2\r\n>3\r\n+subscribe\r\n+{a}2\r\n:2\r\n")
	confirm := ">3\r\n+subscribe\r\n$1\r\na\r\n:1\r\n>3\r\n+subscribe\r\n+b\r\n:2\r\n>3\r\n+psubscribe\r\n+a*\r\n:3\r\n>3\r\n+ssubscribe\r\n+s\r\n:1\r\n"
	for _, data := range []string{
		confirm, strings.ReplaceAll(confirm, ">", "*"), confirm[30:] + confirm,
		confirm + ">3\r\n+message\r\n+a\r\n$3\r\none\r\n>4\r\n+pmessage\r\n+a*\r\n+ab\r\n+x\r\n>3\r\n+smessage\r\n+s\r\n$0\r\n\r\n",
		confirm + strings.Repeat(">3\r\n+message\r\n+a\r\n$60\r\n"+strings.Repeat("x", 60)+"\r\n", 20) + ">3\r\n+message\r\n+a\r\n+y\r\n",
		"-NOPERM no\r\n" + confirm, strings.Repeat("-ERR no\r\n", 20), confirm + "+PONG\r\n*2\r\n+pong\r\n$0\r\n\r\n-NOPERM ping\r\n",
		">3\r\n+message\r\n+a\r\n*1\r\n:1\r\n", ">5\r\n+pmessage\r\n+a*\r\n+a\r\n+x\r\n+y\r\n", "*-1\r\n*0\r\n*?\r\n+message\r\n.\r\n", "|1\r\n+a\r\n+b\r\n>3\r\n+message\r\n+a\r\n$?\r\n;2\r\nab\r\n;0\r\n",
		">3\r\n+unsubscribe\r\n+a\r\n:0\r\n" + confirm, shards + ">3\r\n+smessage\r\n+a\r\n+x\r\n>3\r\n+sunsubscribe\r\n+a\r\n:0\r\n>3\r\n+smessage\r\n+a\r\n+y\r\n",
		"-MOVED 15495 10.0.0.1:1\r\n-ASK 15495 10.0.0.1:1\r\n+OK\r\n-CLUSTERDOWN no\r\n-MOVED 1 10.0.0.2:1\r\n" + shards, strings.Repeat("-MOVED 15495 10.0.0.1:1\r\n", 20) + shards,
		"$1000\r\n", "*100\r\n", "?",
	} {
		f.Add([]byte(data), uint64(len(data)))
	}
	f.Fuzz(func(t *testing.T, data []byte, seed uint64) {
		r := rand.New(rand.NewPCG(seed, 0))
		for _, sharded := range []bool{false, true} {
			want := heard(t, data, func() int { return len(data) }, sharded)
			for name, piece := range map[string]func() int{"byte by byte": func() int { return 1 }, "at random": func() int { return 1 + r.IntN(20) }} {
				if got := heard(t, data, piece, sharded); got != want {
					t.Fatalf("%s:\n%s\nin one read:\n%s", name, got, want)
				}
			}
			// After some silence it sends PING, whose replies belong to no subscription.
			if !strings.ContainsAny(string(data), "-!") {
				if got := heard(t, data, func() int { return r.IntN(20) }, sharded); got != want {
					t.Fatalf("with silences:\n%s\nin one read:\n%s", got, want)
				}
			}
		}
	})
}
