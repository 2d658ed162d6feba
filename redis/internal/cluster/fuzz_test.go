package cluster

import (
	"runtime"
	"testing"

	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// checkTopology fails the test if a topology lacks a property on which callers rely.
func checkTopology(t *testing.T, topology *Topology) {
	t.Helper()
	if len(topology.Nodes) == 0 || len(topology.Nodes) > maxNodes {
		t.Fatalf("%d nodes", len(topology.Nodes))
	}
	for i, n := range topology.Nodes {
		host, port, ok := splitAddr(n.Addr)
		if !ok || port == 0 || host == "" || joinAddr(host, port) != n.Addr {
			t.Fatalf("the address %q", n.Addr)
		}
		if !(&Addresses{}).allowedHost(host) {
			t.Fatalf("the address %q is forbidden", n.Addr)
		}
		if topology.Find(n.Addr) != i {
			t.Fatalf("%s is not found", n.Addr)
		}
		if i > 0 && topology.Nodes[i-1].Addr >= n.Addr {
			t.Fatalf("%s follows %s", n.Addr, topology.Nodes[i-1].Addr)
		}
		if n.Master < -1 || n.Master >= len(topology.Nodes) || n.Master == i {
			t.Fatalf("the master of node %d is %d", i, n.Master)
		}
	}
	next := 0
	for _, r := range topology.Ranges {
		if int(r.First) < next || r.Last < r.First || r.Last >= slot.Count || r.Node < 0 || r.Node >= len(topology.Nodes) {
			t.Fatalf("the range %v after slot %d", r, next)
		}
		next = int(r.Last) + 1
	}
	for _, m := range topology.Moving {
		if m.Slot >= slot.Count || max(m.From, m.To) >= len(topology.Nodes) || min(m.From, m.To) < -1 {
			t.Fatalf("the migration %v", m)
		}
	}
	m := newTestMap()
	m.Apply(topology, m.Begin())
	for _, r := range topology.Ranges {
		owner := m.Table().Route(r.First)
		if n := &topology.Nodes[r.Node]; n.Flags&Handshake == 0 && (owner == nil || owner.Node != n) {
			t.Fatalf("slot %d is not routed to %s", r.First, n.Addr)
		}
	}
}

// fuzzReply passes any bytes to a parser, which must not panic, and must use memory in proportion
// to the bytes.
func fuzzReply(f *testing.F, c Command) {
	f.Fuzz(func(t *testing.T, frame []byte) {
		var replies Replies
		replies[c] = frame
		var before, after runtime.MemStats
		runtime.ReadMemStats(&before)
		topology, err := Parse("127.0.0.1:7001", &Addresses{}, replies)
		runtime.ReadMemStats(&after)
		if n, most := after.TotalAlloc-before.TotalAlloc, uint64(512<<10+200*len(frame)); n > most {
			t.Fatalf("%d bytes allocated for a reply of %d, expected at most %d", n, len(frame), most)
		}
		if err == nil {
			checkTopology(t, topology)
		}
	})
}

func addAll(f *testing.F, frames ...[]byte) {
	for _, frame := range frames {
		f.Add(frame)
	}
}

func FuzzShards(f *testing.F) {
	addAll(f, encode(nil, 2, threeShards()), encode(nil, 3, threeShards()), []byte("*1000000\r\n"), []byte("*1\r\n%2\r\n$5\r\nslots\r\n*2\r\n:0\r\n:9\r\n$5\r\nnodes\r\n*0\r\n"))
	for _, s := range recordings(f, Shards) {
		f.Add(s)
	}
	fuzzReply(f, Shards)
}

func FuzzNodes(f *testing.F) {
	addAll(f, encode(nil, 2, threeNodes()), encode(nil, 2, node("a", ":1@2,h,x=y", "myself,master", "-", 1, "0-9 [3->-"+id("b")+"] [77-<-"+id("b")+"]")))
	for _, s := range recordings(f, Nodes) {
		f.Add(s)
	}
	fuzzReply(f, Nodes)
}

func FuzzSlotRanges(f *testing.F) {
	addAll(f, encode(nil, 2, threeRanges()), encode(nil, 3, threeRanges()), []byte("*1\r\n*3\r\n:0\r\n:16383\r\n*2\r\n_\r\n:1\r\n"))
	for _, s := range recordings(f, SlotRanges) {
		f.Add(s)
	}
	fuzzReply(f, SlotRanges)
}

func FuzzInfo(f *testing.F) {
	addAll(f, encode(nil, 2, info("ok", 7)), encode(nil, 2, info("fail", 1<<30)), []byte("+cluster_current_epoch:9\r\n"))
	f.Fuzz(func(t *testing.T, frame []byte) {
		if info, err := parseInfo(frame); err != nil && info != (information{}) {
			t.Fatalf("%+v beside %v", info, err)
		}
	})
}

func FuzzRedirect(f *testing.F) {
	for _, s := range []string{"3999 127.0.0.1:6381", "0 :6379", "1 ::1:6379", "1 [::1]:1", "16383 a.example:65535", "x", ""} {
		f.Add(s, s != "")
	}
	f.Fuzz(func(t *testing.T, message string, ask bool) {
		code := "MOVED"
		if ask {
			code = "ASK"
		}
		d, err := ParseRedirect(code, message)
		if err != nil {
			return
		}
		if d.Slot >= slot.Count || d.Port == 0 || d.Ask != ask {
			t.Fatalf("%q: %+v", message, d)
		}
		addr, err := d.Addr(&Addresses{}, "10.0.0.1:1")
		if err != nil {
			return
		}
		host, port, ok := splitAddr(addr)
		if !ok || port != int(d.Port) || host == "" || !(&Addresses{}).allowedHost(host) {
			t.Fatalf("%q: %q", message, addr)
		}
	})
}
