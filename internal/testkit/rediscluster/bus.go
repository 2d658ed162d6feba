package rediscluster

import (
	"io"
	"net"
	"strconv"
	"sync"
	"testing"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Each message of the cluster bus begins with a signature. The ID of its sender follows at a fixed place.
const (
	busSignature = "RCmb"
	senderFrom   = 40
	senderTo     = 80
)

// A bus is the relays through which the nodes of a cluster reach each other's cluster buses. It
// discards what one side of a partition sends to the other.
type bus struct {
	mu sync.Mutex
	// Guarded by mu.
	mute  map[way]bool
	links map[*link]struct{}
}

// A way is the direction from one node to another, by their IDs.
type way struct{ from, to string }

// A link is a connection that one node has opened to another.
type link struct {
	opened, accepted net.Conn
	cut              bool // data was discarded; guarded by bus.mu
}

// relay starts the relay in front of the cluster bus of a node, and returns its port. It ends with
// the test.
func (b *bus) relay(t testing.TB, n *Node) int {
	t.Helper()
	l := testkit.Serve(t, func(conn net.Conn, _ int) { b.serve(conn, n) })
	_, text, err := net.SplitHostPort(l.Addr)
	if err != nil {
		t.Fatal(err)
	}
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	return port
}

// serve relays a link to a node until one of its ends closes it.
func (b *bus) serve(opened net.Conn, to *Node) {
	head := make([]byte, senderTo)
	if _, err := io.ReadFull(opened, head); err != nil || string(head[:len(busSignature)]) != busSignature {
		return
	}
	accepted, err := net.Dial("tcp", net.JoinHostPort("127.0.0.1", strconv.Itoa(to.busPort())))
	if err != nil {
		return
	}
	defer accepted.Close()
	l := &link{opened: opened, accepted: accepted}
	b.mu.Lock()
	b.links[l] = struct{}{}
	b.mu.Unlock()
	sender := string(head[senderFrom:senderTo])
	var back sync.WaitGroup
	// Ends when either end of the link is closed, which serve waits for.
	back.Go(func() { b.pump(l, accepted, opened, way{to.ID(), sender}, nil) })
	b.pump(l, opened, accepted, way{sender, to.ID()}, head)
	back.Wait()
	b.mu.Lock()
	delete(b.links, l)
	b.mu.Unlock()
}

// pump forwards what one end of a link sends, starting with what has already been read, and finally
// closes both ends.
func (b *bus) pump(l *link, from, to net.Conn, w way, read []byte) {
	defer from.Close()
	defer to.Close()
	chunk, lost := make([]byte, 64<<10), false
	for {
		// After data was lost, the data that follows makes no sense.
		if lost = lost || b.loses(l, w); !lost {
			if _, err := to.Write(read); err != nil {
				return
			}
		}
		n, err := from.Read(chunk)
		if err != nil {
			return
		}
		read = chunk[:n]
	}
}

// loses reports whether data that a link has received is discarded.
func (b *bus) loses(l *link, w way) bool {
	b.mu.Lock()
	defer b.mu.Unlock()
	if b.mute[w] {
		l.cut = true
	}
	return b.mute[w]
}

// heal lets everything pass again. Links that have lost data are closed, and nodes open new ones.
func (b *bus) heal() {
	b.mu.Lock()
	defer b.mu.Unlock()
	clear(b.mute)
	for l := range b.links {
		if l.cut {
			l.opened.Close()
			l.accepted.Close()
		}
	}
}

// Partition separates nodes from all others: until [Cluster.Heal], messages between them over the
// cluster bus are lost silently, as in a network that drops packets. Clients and replicas reach all
// nodes. It needs [Options.Partitions]. It does not wait until nodes have noticed.
func (c *Cluster) Partition(t testing.TB, nodes ...*Node) {
	t.Helper()
	c.part(t, nodes, true)
}

// Mute is Partition in one direction: the other nodes receive nothing from the given ones, which
// receive everything.
func (c *Cluster) Mute(t testing.TB, nodes ...*Node) {
	t.Helper()
	c.part(t, nodes, false)
}

func (c *Cluster) part(t testing.TB, nodes []*Node, deaf bool) {
	t.Helper()
	if c.bus == nil {
		t.Fatal("the cluster has no Options.Partitions")
	}
	inside := make(map[*Node]bool)
	for _, n := range nodes {
		inside[n] = true
	}
	c.bus.mu.Lock()
	defer c.bus.mu.Unlock()
	for _, other := range c.Nodes() {
		for _, n := range nodes {
			if inside[other] {
				continue
			}
			c.bus.mute[way{n.id, other.id}] = true
			if deaf {
				c.bus.mute[way{other.id, n.id}] = true
			}
		}
	}
}

// Heal ends partitions and waits until the cluster has settled.
func (c *Cluster) Heal(t testing.TB) {
	t.Helper()
	c.bus.heal()
	c.Settle(t)
}
