package redis

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"testing/synctest"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// The tests in this file run in bubbles of package synctest, where time advances only while all
// goroutines wait, so they can count what happens in a minute. They have no engine, because its
// calls are pooled across bubbles.

// A pipedNode is a node of a cluster whose connections are pipes.
type pipedNode struct {
	mu sync.Mutex
	// Guarded by mu.
	answer func(conn int, args []string) string // answers the commands after the greeting
	seen   []string
	conns  []net.Conn
}

func (p *pipedNode) dial(context.Context, string, string) (net.Conn, error) {
	client, server := net.Pipe()
	p.mu.Lock()
	defer p.mu.Unlock()
	p.conns = append(p.conns, server)
	go p.serve(server, len(p.conns)) // ends with the connection, which the hub closes
	return client, nil
}

func (p *pipedNode) serve(conn net.Conn, number int) {
	defer conn.Close()
	scanner, chunk := resp.NewCommandScanner(resp.Limits{}), make([]byte, 64<<10)
	var in []byte
	for {
		n, err := conn.Read(chunk)
		if err != nil {
			return
		}
		for in = append(in, chunk[:n]...); len(in) > 0; {
			n, words, verdict, err := scanner.Scan(in)
			if err != nil || verdict != resp.Done {
				break
			}
			var args []string
			for _, word := range words {
				args = append(args, string(word))
			}
			in = in[n:]
			reply := "+PONG\r\n"
			switch args[0] {
			case "HELLO":
				reply = "%1\r\n+proto\r\n:3\r\n"
			case "CLIENT":
				reply = ":1\r\n"
			case "PING":
			default:
				p.mu.Lock()
				p.seen = append(p.seen, strings.Join(args, " "))
				answer := p.answer
				p.mu.Unlock()
				reply = answer(number, args)
			}
			if _, err := conn.Write([]byte(reply)); err != nil {
				return
			}
		}
	}
}

func (p *pipedNode) answers(f func(conn int, args []string) string) {
	p.mu.Lock()
	defer p.mu.Unlock()
	p.answer = f
}

func (p *pipedNode) commands() []string {
	p.mu.Lock()
	defer p.mu.Unlock()
	return slices.Clone(p.seen)
}

func (p *pipedNode) hangUp() {
	p.mu.Lock()
	defer p.mu.Unlock()
	for _, conn := range p.conns {
		conn.Close()
	}
}

// countingRefresher counts requests, and lets a test provide the result of a
// refresh.
type countingRefresher struct {
	noRefresher
	requests atomic.Int64
}

func (r *countingRefresher) Request() { r.requests.Add(1) }

// A pipedCluster is two nodes and a hub of a client that knows them.
type pipedCluster struct {
	nodes     [2]*pipedNode
	addrs     [2]string
	hub       *hub
	router    *router
	refresher countingRefresher
}

// newPipedCluster returns a cluster whose first node owns all slots. It ends with the test.
func newPipedCluster(t *testing.T) *pipedCluster {
	p := &pipedCluster{nodes: [2]*pipedNode{{}, {}}, addrs: [2]string{"10.0.0.1:6379", "10.0.0.2:6379"}}
	o := Options{OmitClientInfo: true}
	k := makeRouter(newCore(&o), nil, cluster.Addresses{})
	k.refresher, k.sharded = &p.refresher, true
	k.nodes = cluster.NewMap(func(n *cluster.Node) *node {
		at := o
		at.Addr, at.Dialer = n.Addr, p.nodes[slices.Index(p.addrs[:], n.Addr)].dial
		return &node{fail: driver.Errors{Addr: n.Addr}, opts: at, aside: at}
	})
	p.hub, p.router = newHub(k.core, driver.Errors{Addr: "seeds"}, nil), k
	p.hub.shards = k
	p.apply(0)
	t.Cleanup(p.hub.close)
	return p
}

// apply applies a topology in which the given node owns all slots.
func (p *pipedCluster) apply(owner int) {
	nodes := []cluster.Node{{Addr: p.addrs[0], Master: -1}, {Addr: p.addrs[1], Master: -1}}
	p.router.nodes.Apply(&cluster.Topology{Nodes: nodes, Ranges: []cluster.Range{{Last: slot.Count - 1, Node: owner}}}, p.router.nodes.Begin())
	p.hub.remap()
}

// subscribe subscribes to channels of shards.
func (p *pipedCluster) subscribe(ctx context.Context, channels ...string) (*Subscription, error) {
	s := &Subscription{hub: p.hub, wake: make(chan struct{}, 1), topics: make(map[topicKey]struct{})}
	return s, s.Add(ctx, Topics{Shards: channels})
}

// asked returns the number of subscribing commands that the nodes have received.
func (p *pipedCluster) asked() (n int) {
	for _, command := range slices.Concat(p.nodes[0].commands(), p.nodes[1].commands()) {
		if strings.HasPrefix(command, "SSUBSCRIBE") {
			n++
		}
	}
	return n
}

// said returns messages of a server, each given as words.
func said(messages ...string) string {
	var b []byte
	for _, m := range messages {
		words := strings.Fields(m)
		b = resp.AppendPushHeader(b, len(words))
		for _, word := range words {
			b = resp.AppendBulkString(b, word)
		}
	}
	return string(b)
}

// confirms returns the reply of a node that owns the slots of the requested channels.
func confirms(_ int, args []string) string {
	kind := map[string]string{"SSUBSCRIBE": "ssubscribe ", "SUNSUBSCRIBE": "sunsubscribe "}[args[0]]
	if kind == "" {
		return "+OK\r\n"
	}
	var b strings.Builder
	for _, name := range args[1:] {
		b.WriteString(said(kind + name + " 1"))
	}
	return b.String()
}

// redirects returns an answer function for a node that redirects channels to another node.
func redirects(code, to string) func(int, []string) string {
	return func(_ int, args []string) string {
		if len(args) == 1 {
			return "+OK\r\n" // the reply to ASKING
		}
		return fmt.Sprintf("-%s %d %s\r\n", code, slot.Of(args[1]), to)
	}
}

// wantNext checks the next message of a subscription.
func wantNext(t *testing.T, s *Subscription, want Message) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), time.Minute)
	defer cancel()
	if m, err := s.Receive(ctx); m != want || err != nil {
		t.Fatalf("got %+v, %v; want %+v", m, err, want)
	}
}

// TestShardChannelThatEndsAgainAndAgain: a node that repeatedly confirms a channel and ends it
// immediately gets about one request per one or two seconds, however fast the topology changes.
//
// mutant: redis-shard-channel-without-pause
func TestShardChannelThatEndsAgainAndAgain(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedCluster(t)
		p.nodes[0].answers(func(_ int, args []string) string {
			return said("ssubscribe ch 1", "smessage ch x") + strings.Repeat(said("sunsubscribe ch 0"), 100)
		})
		s, err := p.subscribe(t.Context(), "ch")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		for range 100 {
			time.Sleep(time.Second)
			p.apply(0)
		}
		n := p.asked()
		if n < 40 || n > 120 {
			t.Errorf("the node got %d requests in 100 s, want about 75", n)
		}
		if r := int(p.refresher.requests.Load()); r > n {
			t.Errorf("%d requests for a refresh after %d subscriptions", r, n)
		}
		p.nodes[0].answers(func(_ int, args []string) string { return confirms(0, args) + said("smessage ch late") })
		for m := (Message{}); m.Payload != "late"; { // each time there is a message, followed by a Gap
			if m, err = s.Receive(t.Context()); err != nil {
				t.Fatal(err)
			}
		}
	})
}

// TestShardChannelsAreRedirectedWithoutEnd: nodes that redirect to each other forever get a bounded
// number of requests, and the caller gets the redirect. A channel that was confirmed before is
// retried without end, with pauses, and comes back.
//
// mutant: redis-shard-channel-redirected-at-once
func TestShardChannelsAreRedirectedWithoutEnd(t *testing.T) {
	for _, code := range []string{"MOVED", "ASK"} {
		synctest.Test(t, func(t *testing.T) {
			p := newPipedCluster(t)
			circle := func() {
				p.nodes[0].answers(redirects(code, p.addrs[1]))
				p.nodes[1].answers(redirects(code, p.addrs[0]))
			}
			circle()
			_, err := p.subscribe(t.Context(), "ch")
			if e, ok := errors.AsType[*ServerError](err); !ok || e.Code != code || slipstream.OutcomeOf(err) != slipstream.Refused {
				t.Errorf("%s: %v", code, err)
			}
			if n := p.asked(); n < 2 || n > 20 {
				t.Errorf("%s: %d requests for one call", code, n)
			}
			p.apply(0)
			p.nodes[0].answers(confirms)
			p.nodes[1].answers(confirms)
			s, err := p.subscribe(t.Context(), "ch")
			if err != nil {
				t.Fatal(err)
			}
			defer s.Close()
			before := p.asked()
			circle()
			p.nodes[0].hangUp()
			time.Sleep(100 * time.Second)
			if n := p.asked() - before; n < 40 || n > 500 {
				t.Errorf("%s: %d requests in 100 s, want about 3 in one or two seconds", code, n)
			}
			p.nodes[0].answers(confirms)
			p.nodes[1].answers(confirms)
			wantNext(t, s, Message{Kind: Gap, Channel: "ch", Shard: true})
		})
	}
}

// TestShardChannelIsAsked: a channel whose owner says ASK is subscribed to at the target, after
// ASKING.
//
// mutant: redis-shard-channel-not-asked
func TestShardChannelIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedCluster(t)
		asking := 0 // number of the connection; owned by the node
		p.nodes[0].answers(redirects("ASK", p.addrs[1]))
		p.nodes[1].answers(func(conn int, args []string) string {
			switch {
			case args[0] == "ASKING":
				asking = conn
				return "+OK\r\n"
			case asking != conn:
				return redirects("MOVED", p.addrs[0])(conn, args)
			}
			asking = 0
			return said("ssubscribe ch 1", "smessage ch x")
		})
		s, err := p.subscribe(t.Context(), "ch")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		wantNext(t, s, Message{Channel: "ch", Payload: "x", Shard: true})
		if n := p.asked(); n != 2 {
			t.Errorf("%d requests, want one to the owner and one to the target", n)
		}
	})
}

// TestAnswerToWhatTheServerHasEnded: the server ends a channel on its own, and then refuses the
// request to do so. The refusal is not mistaken for that of another channel.
//
// mutant: redis-shard-stray-answer
func TestAnswerToWhatTheServerHasEnded(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedCluster(t)
		two := make(chan struct{})
		p.nodes[0].answers(func(conn int, args []string) string {
			if args[0] == "SUNSUBSCRIBE" {
				<-two
				return said("sunsubscribe one 0") + redirects("MOVED", p.addrs[1])(conn, args)
			}
			return confirms(conn, args)
		})
		s, err := p.subscribe(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		s.Close()
		go func() { // ends when channel two is requested
			time.Sleep(time.Second)
			close(two)
		}()
		if s, err = p.subscribe(t.Context(), "two"); err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		time.Sleep(time.Minute)
		if got := fmt.Sprint(p.nodes[0].commands(), p.nodes[1].commands()); got != "[SSUBSCRIBE one SUNSUBSCRIBE one SSUBSCRIBE two] []" {
			t.Errorf("the nodes got %s", got)
		}
	})
}

// TestShardChannelMovesWithTheTable: a channel moves when a refresh has found another owner of its
// slot, even if its node sends nothing. But a node that has just confirmed the channel is trusted
// for a second.
//
// mutant: redis-shard-channel-stays, redis-shard-node-not-believed
func TestShardChannelMovesWithTheTable(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedCluster(t)
		p.nodes[0].answers(confirms)
		p.nodes[1].answers(confirms)
		s, err := p.subscribe(t.Context(), "ch")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		p.apply(1)
		time.Sleep(steady / 2)
		p.apply(0) // the outdated view of a node
		time.Sleep(2 * steady)
		if n := p.asked(); n != 1 {
			t.Errorf("%d requests, want 1", n)
		}
		p.apply(1)
		wantNext(t, s, Message{Kind: Gap, Channel: "ch", Shard: true})
		p.apply(0)
		wantNext(t, s, Message{Kind: Gap, Channel: "ch", Shard: true})
		if got := fmt.Sprint(p.nodes[0].commands(), p.nodes[1].commands()); got != "[SSUBSCRIBE ch SUNSUBSCRIBE ch SSUBSCRIBE ch] [SSUBSCRIBE ch]" &&
			got != "[SSUBSCRIBE ch SSUBSCRIBE ch] [SSUBSCRIBE ch]" {
			t.Errorf("the nodes got %s", got)
		}
	})
}

// TestShardChannelsOfANodeThatLeavesMoveAtOnce: a node that has just confirmed a channel is trusted
// for a second, but only until it leaves the cluster. Then the connection to it ends, too.
//
// mutant: redis-shard-line-of-a-node-that-left
func TestShardChannelsOfANodeThatLeavesMoveAtOnce(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedCluster(t)
		p.nodes[0].answers(confirms)
		p.nodes[1].answers(confirms)
		left := p.router.nodes.Table().Find(p.addrs[0]).Peer
		s, err := p.subscribe(t.Context(), "ch")
		if err != nil {
			t.Fatal(err)
		}
		defer s.Close()
		p.apply(1)
		p.hub.leave(left)
		start := time.Now()
		wantNext(t, s, Message{Kind: Gap, Channel: "ch", Shard: true})
		if d := time.Since(start); d >= steady {
			t.Errorf("the channel moved after %v", d)
		}
		if got := fmt.Sprint(p.nodes[1].commands()); got != "[SSUBSCRIBE ch]" {
			t.Errorf("the second node got %s", got)
		}
		synctest.Wait()
		p.hub.mu.Lock()
		defer p.hub.mu.Unlock()
		if p.hub.lines[left] != nil {
			t.Error("the connection to the node that left is open")
		}
	})
}

// TestIdleShardLineEnds: a connection without channels ends when it is silent.
func TestIdleShardLineEnds(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p := newPipedCluster(t)
		p.nodes[0].answers(confirms)
		s, err := p.subscribe(t.Context(), "one")
		if err != nil {
			t.Fatal(err)
		}
		time.Sleep(10 * linePing) // it answers PING
		s.Close()
		if s, err = p.subscribe(t.Context(), "two"); err != nil {
			t.Fatal(err)
		}
		s.Close()
		time.Sleep(linePing + time.Second)
		p.hub.mu.Lock()
		if n := len(p.hub.lines); n != 0 {
			t.Errorf("%d connections are open", n)
		}
		p.hub.mu.Unlock()
		if n := len(p.nodes[0].conns); n != 1 {
			t.Errorf("%d connections were opened, want one", n)
		}
	})
}

// TestServerThatOwesAnswers: if a server never confirms the end of topics, the connection is closed
// before the pending answers fill the memory.
//
// mutant: redis-subscriptions-owed-without-end
func TestServerThatOwesAnswers(t *testing.T) {
	k := routerOfOne(Options{})
	h := newHub(k.core, driver.Errors{}, nil)
	defer h.close()
	client, server := net.Pipe()
	defer server.Close()
	l := h.newLine(nil)
	h.main, l.conn = l, &exclusive{conn: client}
	l.writing = true // nothing is written
	const before = mostOwed - 100
	l.asked = slices.Repeat([]*command{{does: unsubscribes}}, before)
	s := &Subscription{hub: h, wake: make(chan struct{}, 1), topics: make(map[topicKey]struct{})}
	key := []topicKey{{ofChannels, "c"}}
	n := 0
	for ; client.SetDeadline(time.Time{}) == nil && n < 200; n++ {
		if _, err := h.add(s, key); err != nil {
			t.Fatal(err)
		}
		h.remove(s, key)
	}
	if n < 48 || n > 52 {
		t.Errorf("the connection was closed after %d subscriptions, want 50: each has two answers, and the server already owes %d", n, before)
	}
}
