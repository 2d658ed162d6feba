package respfront

import (
	"testing"
	"unsafe"
)

// A hit allocates nothing, whatever the command.
func TestHitsAllocateNothing(t *testing.T) {
	f := newFixture(t, echo, Config{Users: users()})
	x := f.session()
	c := &fakeConn{at: f.cache.Now()}
	for _, in := range []string{
		command1("GET", "depts:4711"), "GET depts:4711\r\n", command1("get", "orders:eu:7"), command1("GET", "depts:0"),
		command1("MGET", "depts:1", "depts:2", "orders:eu:7"), command1("EXISTS", "depts:1", "depts:2"),
		command1("STRLEN", "depts:4711"), command1("TTL", "depts:1"), command1("TYPE", "depts:1"), command1("PING"),
		command1("GET", "depts:1") + command1("GET", "depts:2") + command1("GET", "depts:3"), command1("ECHO", "x"), command1("SELECT", "0"),
		command1("AUTH", "web", webPassword), command1("GET", "blobs:00"),
	} {
		for range 2 { // the first loads, the second fills the pools
			x.data(c, []byte(in))
			c.take()
		}
		bytes := []byte(in)
		c.parts = []*part{{}}
		out := &c.parts[0].out
		x.data(c, bytes)
		if n := testing.AllocsPerRun(200, func() {
			out.B = out.B[:0]
			if x.data(c, bytes) != len(bytes) || len(out.B) == 0 {
				t.Fatal("no answer")
			}
		}); n != 0 && poolsKeep {
			t.Errorf("%q: %v allocations, want 0", in, n)
		}
		if len(c.parts) != 1 {
			t.Errorf("%q was loaded again", in)
		}
		c.parts = nil
	}
}

// An idle connection costs no more than its session.
func TestSessionIsSmall(t *testing.T) {
	if n := unsafe.Sizeof(session{}); n > 208 { // the size class of objects from 193 bytes
		t.Errorf("a session takes %d bytes, want at most 208", n)
	}
	f := newFixture(t, echo, Config{})
	x := f.session()
	c := &fakeConn{at: f.cache.Now()}
	x.data(c, []byte("GET depts:1\r\nGET dep"))
	c.take()
	if x.scanner == nil {
		t.Error("the beginning of a command is lost")
	}
	x.data(c, []byte("GET depts:1\r\n"))
	c.take()
	if x.scanner != nil {
		t.Error("an idle session holds a scanner")
	}
}
