package redistest_test

import (
	"context"
	"errors"
	"fmt"
	"log"
	"net"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/redis/redistest"
)

// wire is a connection whose replies are compared as strings.
type wire struct {
	t       *testing.T
	conn    net.Conn
	scanner *resp.Scanner
	in      []byte
}

func open(t *testing.T, addr string) *wire {
	t.Helper()
	conn, err := net.Dial("tcp", addr)
	if err != nil {
		t.Fatal(err)
	}
	t.Cleanup(func() { conn.Close() })
	return &wire{t: t, conn: conn, scanner: resp.NewScanner(resp.Limits{})}
}

// ask sends a command, given as words, and returns the next message as a string.
func (w *wire) ask(command string) string {
	w.t.Helper()
	return say(w.value(command))
}

func (w *wire) value(command string) resp.Value {
	w.t.Helper()
	if _, err := w.conn.Write(resp.AppendCommand(nil, strings.Fields(command)...)); err != nil {
		w.t.Fatal(err)
	}
	return w.next()
}

// next returns the next message.
func (w *wire) next() resp.Value {
	w.t.Helper()
	if err := w.conn.SetReadDeadline(time.Now().Add(30 * time.Second)); err != nil {
		w.t.Fatal(err)
	}
	for chunk := make([]byte, 64<<10); ; {
		if len(w.in) > 0 {
			n, verdict, err := w.scanner.Scan(w.in)
			if err != nil {
				w.t.Fatal(err)
			}
			if verdict != resp.More {
				frame := slices.Clone(w.in[:n])
				w.in = w.in[n:]
				v, _, err := resp.Parse(frame, resp.Limits{})
				if err != nil {
					w.t.Fatal(err)
				}
				return v
			}
		}
		n, err := w.conn.Read(chunk)
		if err != nil {
			w.t.Fatal(err)
		}
		w.in = append(w.in, chunk[:n]...)
	}
}

// say returns a value as a string: errors start with a dash, and pushes with an arrow.
func say(v resp.Value) string {
	switch {
	case v.Null:
		return "null"
	case v.Kind == resp.SimpleError:
		return "-" + string(v.Str)
	case v.Kind == resp.Integer:
		return strconv.FormatInt(v.Int, 10)
	case v.Elems != nil || v.Str == nil:
		var words []string
		for _, e := range v.Elems {
			words = append(words, say(e))
		}
		text := "[" + strings.Join(words, " ") + "]"
		if v.Kind == resp.Push {
			return ">" + text
		}
		return text
	}
	return string(v.Str)
}

// fakeCluster returns a cluster that is closed when the test ends.
func fakeCluster(t *testing.T, o redistest.ClusterOptions) *redistest.Cluster {
	t.Helper()
	testkit.NoLeaks(t)
	c := redistest.NewCluster(o)
	t.Cleanup(c.Close)
	return c
}

// is compares strings.
func is(t *testing.T, got, want string) {
	t.Helper()
	if got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

// TestSlots checks the examples of the specification. TestFakeClusterIsLikeARealOne compares slots
// with those of a server.
func TestSlots(t *testing.T) {
	for key, want := range map[string]int{
		"": 0, "123456789": 12739, "foo": 12182, "{user1000}.following": 3443, "{user1000}.followers": 3443,
		"foo{{bar}}zap": redistest.Slot("{bar"), "foo{bar}{zap}": redistest.Slot("bar"),
	} {
		if got := redistest.Slot(key); got != want {
			t.Errorf("%q has slot %d, want %d", key, got, want)
		}
	}
}

// TestMigration: the old master serves the keys that it still has, and the new one serves those
// that were moved, to clients that send ASKING.
func TestMigration(t *testing.T) {
	c := fakeCluster(t, redistest.ClusterOptions{})
	slot := redistest.Slot("{a}")
	from, to := c.MasterOf(slot), c.MasterOf((slot+redistest.Slots/3)%redistest.Slots)
	old, next := open(t, from.Addr()), open(t, to.Addr())
	ask, moved := fmt.Sprintf("-ASK %d %s", slot, to.Addr()), fmt.Sprintf("-MOVED %d %s", slot, from.Addr())
	is(t, old.ask("MSET {a}1 x {a}2 y {a}3 z"), "OK")
	is(t, next.ask("GET {a}1"), moved)

	c.BeginMigration(slot, to)
	is(t, old.ask("GET {a}1"), "x")
	is(t, old.ask("GET {a}4"), ask)
	c.MoveKey("{a}1", "{a}2", "none{a}")
	is(t, old.ask("GET {a}1"), ask)
	is(t, old.ask("MGET {a}1 {a}3"), "-TRYAGAIN Multiple keys request during rehashing of slot")
	is(t, next.ask("GET {a}1"), moved)
	is(t, next.ask("ASKING"), "OK")
	is(t, next.ask("GET {a}1"), "x")
	is(t, next.ask("GET {a}1"), moved) // ASKING applies to one command
	is(t, next.ask("ASKING"), "OK")
	is(t, next.ask("MGET {a}1 {a}3"), "-TRYAGAIN Multiple keys request during rehashing of slot")
	// It also applies to a whole transaction.
	is(t, next.ask("ASKING"), "OK")
	is(t, next.ask("MULTI"), "OK")
	is(t, next.ask("GET {a}1"), "QUEUED")
	is(t, next.ask("APPEND {a}1 x"), "QUEUED")
	is(t, next.ask("EXEC"), "[x 2]")
	is(t, next.ask("GET {a}1"), moved)

	c.FinishMigration(slot)
	is(t, next.ask("MGET {a}1 {a}2 {a}3"), "[xx y z]")
	is(t, old.ask("GET {a}1"), fmt.Sprintf("-MOVED %d %s", slot, to.Addr()))
	if c.MasterOf(slot) != to {
		t.Error("the slot has not moved")
	}
	c.MoveSlots(from, slot, slot, 0)
	is(t, old.ask("GET {a}2"), "y")
}

// TestClusterRefuses: calls that must be mistakes in a test panic.
func TestClusterRefuses(t *testing.T) {
	c := fakeCluster(t, redistest.ClusterOptions{})
	for name, f := range map[string]func(){
		"to itself":       func() { c.BeginMigration(0, c.MasterOf(0)) },
		"no migration":    func() { c.FinishMigration(0) },
		"no migration of": func() { c.MoveKey("k") },
		"start twice":     func() { c.Nodes()[0].Start() },
	} {
		func() {
			defer func() {
				if recover() == nil {
					t.Errorf("%s: no panic", name)
				}
			}()
			f()
		}()
	}
}

// TestFailoverOfTheFake: roles change, replicas have all keys, and READONLY permits a replica to
// answer.
func TestFailoverOfTheFake(t *testing.T) {
	c := fakeCluster(t, redistest.ClusterOptions{Masters: 2, ReplicasPer: 1})
	slot := redistest.Slot("k")
	master := c.MasterOf(slot)
	replica := c.ReplicasOf(master)[0]
	first, second := open(t, master.Addr()), open(t, replica.Addr())
	is(t, first.ask("SET k v"), "OK")
	is(t, second.ask("GET k"), fmt.Sprintf("-MOVED %d %s", slot, master.Addr()))
	is(t, second.ask("READONLY"), "OK")
	is(t, second.ask("GET k"), "v")
	is(t, second.ask("SET k w"), fmt.Sprintf("-MOVED %d %s", slot, master.Addr()))
	is(t, second.ask("FLUSHALL"), "-READONLY You can't write against a read only replica.")
	is(t, second.ask("READWRITE"), "OK")
	is(t, second.ask("GET k"), fmt.Sprintf("-MOVED %d %s", slot, master.Addr()))
	c.Failover(replica)
	is(t, second.ask("SET k w"), "OK")
	is(t, first.ask("GET k"), fmt.Sprintf("-MOVED %d %s", slot, replica.Addr()))
	c.Failover(replica) // it is the master already
	if got := c.ReplicasOf(replica); len(got) != 1 || got[0] != master {
		t.Errorf("the replicas are %v", got)
	}
}

// TestNodesStopAndStart: a stopped node refuses connections and is reported as failed. It comes
// back with its keys, at the same address or at another one.
func TestNodesStopAndStart(t *testing.T) {
	c := fakeCluster(t, redistest.ClusterOptions{ReplicasPer: 1})
	n := c.MasterOf(redistest.Slot("k"))
	is(t, open(t, n.Addr()).ask("SET k v"), "OK")
	health := func() string {
		t.Helper()
		for _, line := range strings.Split(open(t, c.ReplicasOf(n)[0].Addr()).ask("CLUSTER NODES"), "\n") {
			if id, rest, _ := strings.Cut(line, " "); id == n.ID() {
				f := strings.Fields(rest)
				return strings.Join([]string{strings.Split(f[0], "@")[0], f[1], f[6]}, " ")
			}
		}
		return "unknown"
	}
	is(t, health(), n.Addr()+" master connected")
	for range 2 {
		n.Stop()
	}
	if conn, err := net.Dial("tcp", n.Addr()); err == nil {
		conn.Close()
		t.Error("a stopped node accepts connections")
	}
	is(t, health(), n.Addr()+" master,fail disconnected")
	n.Start()
	is(t, open(t, n.Addr()).ask("GET k"), "v")
	before := n.Addr()
	n.Stop()
	n.StartElsewhere()
	if n.Addr() == before || !slices.Contains(c.Addrs(), n.Addr()) {
		t.Errorf("the node is at %s, and was at %s", n.Addr(), before)
	}
	is(t, open(t, n.Addr()).ask("GET k"), "v")
	is(t, health(), n.Addr()+" master connected")
}

// TestClusterDown: the cluster is down on request, and only for commands with keys.
func TestClusterDown(t *testing.T) {
	c := fakeCluster(t, redistest.ClusterOptions{Masters: 1})
	w := open(t, c.Addrs()[0])
	c.SetDown(true)
	is(t, w.ask("GET k"), "-CLUSTERDOWN The cluster is down")
	is(t, w.ask("PING"), "PONG")
	if info := w.ask("CLUSTER INFO"); !strings.Contains(info, "cluster_state:fail\r\n") {
		t.Error(info)
	}
	c.SetDown(false)
	is(t, w.ask("GET k"), "null")
}

// TestShardChannels: messages reach the subscribers at all nodes of the shard, and a subscription
// ends when its slot gets another master.
func TestShardChannels(t *testing.T) {
	c := fakeCluster(t, redistest.ClusterOptions{ReplicasPer: 1})
	slot := redistest.Slot("ch")
	master := c.MasterOf(slot)
	replica := c.ReplicasOf(master)[0]
	one, two, sender := open(t, master.Addr()), open(t, replica.Addr()), open(t, master.Addr())
	one.value("HELLO 3")
	is(t, one.ask("SSUBSCRIBE ch {ch}2"), ">[ssubscribe ch 1]")
	is(t, say(one.next()), ">[ssubscribe {ch}2 2]")
	is(t, two.ask("SSUBSCRIBE ch"), "[ssubscribe ch 1]")
	is(t, two.ask("GET k"), "-ERR Can't execute 'get': only (P|S)SUBSCRIBE / (P|S)UNSUBSCRIBE / PING / QUIT / RESET are allowed in this context")
	is(t, two.ask("PING"), "[pong ]")
	is(t, sender.ask("SPUBLISH ch hello"), "1")
	is(t, say(one.next()), ">[smessage ch hello]")
	is(t, say(two.next()), "[smessage ch hello]")
	is(t, open(t, c.MasterOf((slot+redistest.Slots/3)%redistest.Slots).Addr()).ask("SSUBSCRIBE ch"), fmt.Sprintf("-MOVED %d %s", slot, master.Addr()))
	is(t, one.ask("SUNSUBSCRIBE {ch}2"), ">[sunsubscribe {ch}2 1]")

	c.MoveSlots(c.MasterOf((slot+redistest.Slots/3)%redistest.Slots), (slot+1)%redistest.Slots, slot)
	is(t, say(one.next()), ">[sunsubscribe ch 0]")
	is(t, say(two.next()), "[sunsubscribe ch 0]")
	is(t, two.ask("PING"), "PONG")
	is(t, sender.ask("SPUBLISH ch hello"), fmt.Sprintf("-MOVED %d %s", slot, c.MasterOf(slot).Addr()))

	third := open(t, c.MasterOf(slot).Addr())
	is(t, third.ask("SSUBSCRIBE ch"), "[ssubscribe ch 1]")
	c.Failover(c.ReplicasOf(c.MasterOf(slot))[0])
	is(t, say(third.next()), "[sunsubscribe ch 0]")
}

// TestClusterHandlers: a handler of the cluster answers at all nodes and can find out whether the
// node has its keys, and the clock of the test applies to all nodes.
func TestClusterHandlers(t *testing.T) {
	c := fakeCluster(t, redistest.ClusterOptions{})
	c.Handle("mine", func(conn *redistest.Conn, args []string) any {
		if err := conn.Redirection(args[1:]...); err != nil {
			return err
		}
		return conn.Node().ID()
	})
	added := c.AddMaster()
	slot := redistest.Slot("k")
	master := c.MasterOf(slot)
	is(t, open(t, master.Addr()).ask("MINE k"), master.ID())
	w := open(t, added.Addr())
	is(t, w.ask("MINE k"), fmt.Sprintf("-MOVED %d %s", slot, master.Addr()))
	is(t, w.ask("MINE k j"), "-CROSSSLOT Keys in request don't hash to the same slot")
	c.MoveSlots(added, slot)
	is(t, w.ask("MINE k"), added.ID())
	w.ask("CLUSTER MYID")
	if seen := added.Seen(); len(seen) != 3 {
		t.Errorf("seen: %v", seen)
	}
	is(t, w.ask("SET k v PX 1000"), "OK")
	c.Advance(time.Second)
	is(t, w.ask("GET k"), "null")
	added.Handle("MINE", nil)
	if got := w.ask("MINE k"); !strings.HasPrefix(got, "-ERR unknown command") {
		t.Error(got)
	}
	added.HangUp()
	if _, err := w.conn.Read(make([]byte, 1)); err == nil {
		t.Error("the connection was not closed")
	}
}

// TestNoCluster: a single server refuses commands that need a cluster.
func TestNoCluster(t *testing.T) {
	s := redistest.NewServer()
	defer s.Close()
	conn, err := s.Dial(t.Context())
	if err != nil {
		t.Fatal(err)
	}
	w := &wire{t: t, conn: conn, scanner: resp.NewScanner(resp.Limits{})}
	for _, command := range []string{"CLUSTER SHARDS", "ASKING", "READONLY", "READWRITE"} {
		is(t, w.ask(command), "-ERR This instance has cluster support disabled")
	}
	is(t, w.ask("SELECT 1"), "OK")
}

func ExampleCluster() {
	cluster := redistest.NewCluster(redistest.ClusterOptions{})
	defer cluster.Close()
	ctx, slot := context.Background(), redistest.Slot("user:1")
	master := cluster.MasterOf(slot)
	client, err := redis.Connect(ctx, redis.Options{Addr: master.Addr()})
	if err != nil {
		log.Fatal(err)
	}
	defer client.Close()

	// A node answers differently before, during and after the migration of a key's slot.
	answer := func() {
		name, _, err := client.Get(ctx, "user:1")
		var e *redis.ServerError
		if errors.As(err, &e) {
			fmt.Println(e.Code)
			return
		}
		fmt.Println(name, err)
	}
	if err := client.Set(ctx, "user:1", "Ada"); err != nil {
		log.Fatal(err)
	}
	answer()
	cluster.BeginMigration(slot, cluster.AddMaster())
	cluster.MoveKey("user:1")
	answer()
	cluster.FinishMigration(slot)
	answer()
	// Output:
	// Ada <nil>
	// ASK
	// MOVED
}
