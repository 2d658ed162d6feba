package loop

import (
	"fmt"
	"net/netip"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
)

// namedPeer is a peer that reports to a test that it was cut.
type namedPeer struct {
	name string
	cut  *[]string
}

func (p namedPeer) Cut(why CloseReason) { *p.cut = append(*p.cut, p.name+" "+why.String()) }

// peersOf parses lines "name address holds idle"; idle is in seconds. A leading "-" means that the
// peer is in use; a number that follows is the time since its last event. A leading "?" means that
// it has not proven itself.
func peersOf(t *testing.T, text string, cut *[]string) (peers []Peer) {
	t.Helper()
	for line := range strings.Lines(strings.TrimSpace(text)) {
		var name, address, idle string
		var holds int64
		if _, err := fmt.Sscan(line, &name, &address, &holds, &idle); err != nil {
			t.Fatalf("%q: %v", line, err)
		}
		p := Peer{Holds: holds, Idle: -1, Proven: true, Conn: namedPeer{name, cut}}
		p.Group = GroupOf(netip.MustParseAddr(address), name[0] == 'x', p.Conn)
		if rest, found := strings.CutPrefix(idle, "?"); found {
			p.Proven, idle = false, rest
		}
		if idle != "-" {
			quiet, busy := strings.CutPrefix(idle, "-")
			d, err := time.ParseDuration(quiet + "s")
			if err != nil {
				t.Fatal(err)
			}
			if busy {
				p.Quiet = d
			} else {
				p.Idle = d
			}
		}
		peers = append(peers, p)
	}
	return peers
}

func TestWhoIsClosedForMemory(t *testing.T) {
	var cut []string
	peers := peersOf(t, `
a1 192.0.2.1      100 -
a2 192.0.2.1      90 -
a3 192.0.2.1      10 -
b1 2001:db8::1    120 -
b2 2001:db8::2    30 -
c1 2001:db8:1::1  140 -
x1 192.0.2.9      95 -
x2 192.0.2.9      94 -
`, &cut)
	rankByMemory(peers, NewBudget(0).holds)
	got := ""
	for _, p := range peers {
		got += p.Conn.(namedPeer).name + " "
	}
	// a holds 200, b, a network, 150, and c 140; a is then left with 100; x1 and x2 are counted
	// separately.
	if want := "a1 b1 c1 a2 x1 x2 b2 a3 "; got != want {
		t.Errorf("closed in the order %s, want %s", got, want)
	}
}

func TestWhoMakesRoom(t *testing.T) {
	for _, row := range []struct {
		name, peers string
		places      int
		want        string
	}{
		{"strangers of the largest crowd first, the oldest of them", `
a1 192.0.2.1 0 100
b1 192.0.2.2 0 ?50
c1 192.0.2.3 0 ?1
c2 192.0.2.3 0 ?2`, 128, "c2 room-unproven, b1 room-unproven"},
		{"then the largest crowd, whose busy ones count", `
a1 192.0.2.1 0 100
b1 192.0.2.2 0 -
b2 192.0.2.2 0 20
b3 192.0.2.2 0 30`, 128, "b3 room-address, b2 room-address"},
		{"then the longest idle", `
a1 192.0.2.1 0 100
x1 192.0.2.9 0 200
x2 192.0.2.9 0 10`, 128, "x1 room-idle, a1 room-idle"},
		{"none that was used a moment ago", `
a1 192.0.2.1 0 0.5
b1 192.0.2.2 0 -`, 128, ""},
		{"unless the address has a quarter of the places", `
a1 192.0.2.1 0 0.5
a2 192.0.2.1 0 0.05
b1 192.0.2.2 0 0.9`, 4, "a1 room-address"},
		{"no other one while many are new", `
a1 192.0.2.1 0 100
b1 192.0.2.2 0 ?0.5
b2 192.0.2.3 0 ?0.5`, 8, ""},
		{"nor one that has just been accepted", `
a1 192.0.2.1 0 ?0.5
b1 192.0.2.2 0 ?1.5`, 4, "b1 room-unproven"},
		{"those in use of an address with more than a quarter of the places, before idle ones of others", `
a1 192.0.2.1 0 100
a2 192.0.2.1 0 200
b1 192.0.2.2 0 -
b2 192.0.2.2 0 -0.3
b3 192.0.2.2 0 -0.2
b4 192.0.2.2 0 -0.1`, 8, "b2 room-crowd"},
		{"of such an address idle ones first", `
a1 192.0.2.1 0 100
b1 192.0.2.2 0 -9
b2 192.0.2.2 0 -9
b3 192.0.2.2 0 0.2
b4 192.0.2.2 0 0.3`, 8, "b4 room-address"},
		{"one in use of such an address that has many others waits until it is quiet", `
b1 192.0.2.2 0 -0.9
b2 192.0.2.2 0 0.05
b3 192.0.2.2 0 0.05`, 8, ""},
		{"those in use of the largest crowd, the quietest of them, if none is idle", `
a1 192.0.2.1 0 -50
b1 192.0.2.2 0 -2
b2 192.0.2.2 0 -3
c1 192.0.2.3 0 -1
c2 192.0.2.3 0 -2
c3 192.0.2.3 0 -0.5`, 128, "c2 room-crowd, b2 room-crowd"},
		{"none in use that is the only one of its address", `
a1 192.0.2.1 0 -50
x1 192.0.2.9 0 -60
x2 192.0.2.9 0 -70`, 4, ""},
		{"no idle one of a smaller address while most places are in use by one address", `
a1 192.0.2.1 0 100
a2 192.0.2.1 0 -100
b1 192.0.2.2 0 -
b2 192.0.2.2 0 -
b3 192.0.2.2 0 -
b4 192.0.2.2 0 0.05
b5 192.0.2.2 0 -`, 8, ""},
		{"but a stranger", `
a1 192.0.2.1 0 ?100
b1 192.0.2.2 0 -
b2 192.0.2.2 0 -
b3 192.0.2.2 0 -`, 5, "a1 room-unproven"},
		{"half of the places are not most of them", `
a1 192.0.2.1 0 100
b1 192.0.2.2 0 -
b2 192.0.2.2 0 -
b3 192.0.2.2 0 -`, 6, "a1 room-idle"},
		{"nor are half of the connections most of them", `
a1 192.0.2.1 0 100
b1 192.0.2.2 0 -
b2 192.0.2.2 0 0.05`, 3, "a1 room-idle"},
	} {
		var cut []string
		room := Room{Places: row.places}
		room.Make(peersOf(t, row.peers, &cut), time.Now())
		if got := strings.Join(cut, ", "); got != row.want {
			t.Errorf("%s: closed %q, want %q", row.name, got, row.want)
		}
	}
}

// If an address holds most of the places and keeps them busy, one of its own connections is closed:
// at first none is, and after a second the one that has been quiet for the longest time.
func TestBusyCrowdMakesRoom(t *testing.T) {
	const crowd = `
a1 192.0.2.1 0 100
a2 192.0.2.1 0 -100
b1 192.0.2.2 0 -0.02
b2 192.0.2.2 0 -0.03
b3 192.0.2.2 0 -0.01
b4 192.0.2.2 0 0.05
b5 192.0.2.2 0 -`
	now := time.Now()
	room := Room{Places: 8}
	for _, step := range []struct {
		after       time.Duration
		peers, want string
	}{
		{0, crowd, ""},
		{500 * time.Millisecond, crowd, ""},
		{499 * time.Millisecond, crowd, ""},
		{time.Millisecond, crowd, "b2 room-crowd"},
		{50 * time.Millisecond, crowd, ""},                                         // each starts a new second
		{900 * time.Millisecond, crowd + "\nb6 192.0.2.2 0 -0.1", "b6 room-crowd"}, // quiet
		{100 * time.Millisecond, crowd, ""},
		{900 * time.Millisecond, crowd, ""},
		{1100 * time.Millisecond, crowd, ""}, // no call for a second: there was room
		{900 * time.Millisecond, crowd, ""},
		{100 * time.Millisecond, crowd, "b2 room-crowd"},
	} {
		now = now.Add(step.after)
		var cut []string
		room.Make(peersOf(t, step.peers, &cut), now)
		if got := strings.Join(cut, ", "); got != step.want {
			t.Errorf("%v later: closed %q, want %q", step.after, got, step.want)
		}
	}
}

// The number of bytes that belong to large answers agrees with a list that has an entry for each
// byte.
func TestOutputKnowsLargeAnswers(t *testing.T) {
	r := testkit.Rand(t)
	var o Output
	var is []bool
	for range 20_000 {
		switch n := 1 + r.IntN(20_000); r.IntN(5) {
		case 0, 1:
			o.Link(make([]byte, n))
			is = append(is, make([]bool, n)...)
		case 2:
			o.Link(make([]byte, n))
			o.Link(make([]byte, 100))
			o.Large(n + 100)
			is = append(is, slices.Repeat([]bool{true}, n+100)...)
		case 3:
			n = min(3*n, o.Len())
			o.advance(n)
			is = is[n:]
		case 4:
			var other Output
			other.B = append(other.B, make([]byte, n)...)
			other.Large(n / 2)
			is = append(is, make([]bool, n-n/2)...)
			is = append(is, slices.Repeat([]bool{true}, n/2)...)
			o.take(&other)
		}
		want := 0
		for _, large := range is {
			if large {
				want++
			}
		}
		if got := o.large(); got != want {
			t.Fatalf("%d bytes of large answers, want %d of %d", got, want, len(is))
		}
		if len(is) > 200_000 {
			o.advance(o.Len())
			is = nil
		}
	}
}

func TestAddressLimit(t *testing.T) {
	proxies := []netip.Prefix{netip.MustParsePrefix("198.51.100.0/24")}
	a := AddressLimit{Most: 2}
	take := func(text string) bool {
		addr, _ := netip.ParseAddr(text) // not valid for a unix socket
		_, _, ok := a.Take(addr, Alone(addr, proxies))
		return ok
	}
	for _, row := range []struct {
		addr string
		ok   bool
	}{
		{"192.0.2.1", true}, {"192.0.2.1", true}, {"192.0.2.1", false}, {"192.0.2.2", true},
		{"2001:db8::1", true}, {"2001:db8::2", true}, {"2001:db8::3", false}, {"2001:db8:0:1::1", true},
		{"127.0.0.1", true}, {"127.0.0.1", true}, {"127.0.0.1", true}, {"::1", true}, {"::1", true}, {"::1", true},
		{"198.51.100.7", true}, {"198.51.100.7", true}, {"198.51.100.7", true}, {"", true}, {"", true}, {"", true},
	} {
		if ok := take(row.addr); ok != row.ok {
			t.Errorf("a connection from %q: admitted %v, want %v", row.addr, ok, row.ok)
		}
	}
	g := GroupOf(netip.MustParseAddr("192.0.2.1"), false, nil)
	a.Release(g)
	if !take("192.0.2.1") || take("192.0.2.1") {
		t.Error("closing a connection does not make room for another one")
	}
	if none := (&AddressLimit{}); !func() bool { _, _, ok := none.Take(netip.MustParseAddr("192.0.2.1"), false); return ok }() {
		t.Error("a connection is refused although there is no limit")
	}
}
