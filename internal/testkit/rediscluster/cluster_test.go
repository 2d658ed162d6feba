//go:build unix

package rediscluster

import (
	"fmt"
	"os/exec"
	"runtime"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/faultproxy"
	"github.com/slipstream-go/slipstream/redis/redistest"
)

// binaries returns the server programs with which the package is tested in addition to the default
// one.
func binaries() []string {
	return slices.DeleteFunc([]string{"redis-server-8", "valkey-server"}, func(name string) bool {
		_, err := exec.LookPath(name)
		return err != nil
	})
}

// refused returns the error of a node for a command.
func refused(t *testing.T, n *Node, args ...string) string {
	t.Helper()
	v, err := n.Ask(args...)
	if err == nil {
		t.Errorf("%s: %s: answered %s, expected an error", n, args, text(v))
		return ""
	}
	return err.Error()
}

// TestCluster runs each operation once.
func TestCluster(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{ReplicasPer: 1})
	for _, test := range []struct {
		name string
		run  func(t *testing.T, c *Cluster)
	}{
		{"Formed", formed}, {"Counters", counters}, {"MigrationByStep", migrationByStep}, {"Migrate", migrate},
		{"Failover", failover}, {"Replication", replication}, {"KillAndRestart", killAndRestart}, {"Freeze", freeze},
		{"Move", move}, {"Announce", announce}, {"AddAndForget", addAndForget},
	} {
		t.Run(test.name, func(t *testing.T) { test.run(t, c) })
	}
}

func formed(t *testing.T, c *Cluster) {
	nodes := c.Nodes()
	if len(nodes) != 6 || len(c.Addrs()) != 6 || c.Addrs()[5] != nodes[5].Addr() || c.TLS() != nil {
		t.Fatalf("nodes %v, addresses %v", nodes, c.Addrs())
	}
	for i, master := range nodes[:3] {
		for _, slot := range []int{i * Slots / 3, (i+1)*Slots/3 - 1} {
			if got := c.MasterOf(t, slot); got != master {
				t.Errorf("slot %d is at %s, expected %s", slot, got, master)
			}
		}
		if got := c.ReplicasOf(t, master); !slices.Equal(got, nodes[3+i:4+i]) {
			t.Errorf("the replicas of %s are %v", master, got)
		}
		if got := text(master.Do(t, "SET", keyAt(i*Slots/3), "v")); got != "OK" {
			t.Error(got)
		}
	}
}

// replicaOf returns a replica of the master of a slot, and that master.
func replicaOf(t *testing.T, c *Cluster, slot int) (replica, master *Node) {
	t.Helper()
	master = c.MasterOf(t, slot)
	replicas := c.ReplicasOf(t, master)
	if len(replicas) == 0 {
		t.Fatalf("%s, the master of slot %d, has no replicas\n%s", master, slot, c.State())
	}
	return replicas[0], master
}

// keyAt returns a key in the slot.
func keyAt(slot int) string {
	for i := 0; ; i++ {
		if key := "k" + strconv.Itoa(i); redistest.Slot(key) == slot {
			return key
		}
	}
}

func counters(t *testing.T, c *Cluster) {
	n := c.Nodes()[0]
	n.ResetCommands(t)
	n.Do(t, "EXISTS", keyAt(0))
	n.SetConfig(t, "maxmemory", "7mb")
	if calls := n.Commands(t); calls["exists"] != 1 || calls["config|set"] != 1 {
		t.Errorf("commands %v", calls)
	}
	if ids := n.Connections(t); len(ids) != 0 {
		t.Errorf("connections %v, expected none", ids)
	}
	client, err := dial(n.Addr(), nil, "")
	if err != nil {
		t.Fatal(err)
	}
	defer client.net.Close()
	id, err := client.do("CLIENT", "ID")
	if err != nil {
		t.Fatal(err)
	}
	if _, err := client.do("CLUSTER", "NODES"); err != nil {
		t.Fatal(err)
	}
	if _, err := n.sightings(); err != nil {
		t.Fatal(err)
	}
	if calls := n.CommandsOfClients(t); calls["cluster|nodes"] != 1 || calls["client|id"] != 1 || calls["exists"] != 0 {
		t.Errorf("commands of clients: %v", calls)
	}
	if ids := n.Connections(t); !slices.Equal(ids, []int64{id.Int}) {
		t.Errorf("connections %v, expected %d", ids, id.Int)
	}
	c.SetConfig(t, "maxmemory", "0")
	for _, n := range c.Nodes() {
		if got := words(n.Do(t, "CONFIG", "GET", "maxmemory")); !slices.Equal(got, []string{"maxmemory", "0"}) {
			t.Errorf("%s has %v", n, got)
		}
	}
}

func migrationByStep(t *testing.T, c *Cluster) {
	slot := c.Slot(t, "{tag}")
	from := c.MasterOf(t, slot)
	to := c.Nodes()[0]
	if to == from {
		to = c.Nodes()[1]
	}
	for i := range 5 {
		from.Do(t, "SET", "{tag}"+strconv.Itoa(i), "v")
	}
	m := c.BeginMigration(t, slot, to)
	if m.From != from || m.To != to {
		t.Errorf("from %s to %s", m.From, m.To)
	}
	if n := m.MoveKeys(t, 2); n != 2 {
		t.Errorf("%d keys were moved", n)
	}
	m.MoveKey(t, "{tag}0", "{tag}1", "{tag}2") // some of them have already been moved
	ask := fmt.Sprintf("ASK %d %s", slot, to.Addr())
	if got := refused(t, from, "GET", "{tag}0"); got != ask {
		t.Errorf("the old master answers %s, expected %s", got, ask)
	}
	if got := refused(t, to, "GET", "{tag}0"); got != fmt.Sprintf("MOVED %d %s", slot, from.Addr()) {
		t.Errorf("the new master answers %s", got)
	}
	m.Finish(t)
	if got := c.MasterOf(t, slot); got != to {
		t.Errorf("the slot is at %s", got)
	}
	for i := range 5 {
		to.Do(t, "GET", "{tag}"+strconv.Itoa(i))
	}
	if got := to.Do(t, "CLUSTER", "COUNTKEYSINSLOT", strconv.Itoa(slot)).Int; got != 5 {
		t.Errorf("%d keys have arrived", got)
	}
}

func migrate(t *testing.T, c *Cluster) {
	to := c.MasterOf(t, Slots-1)
	key := keyAt(1)
	c.MasterOf(t, 1).Do(t, "SET", key, "v")
	c.Migrate(t, to, 0, 1, 2, Slots/2)
	for _, slot := range []int{0, 1, 2, Slots / 2} {
		if got := c.MasterOf(t, slot); got != to {
			t.Errorf("slot %d is at %s", slot, got)
		}
	}
	if got := text(to.Do(t, "GET", key)); got != "v" {
		t.Errorf("the key has %q", got)
	}
}

func failover(t *testing.T, c *Cluster) {
	for _, operation := range []func(t testing.TB, replica *Node){c.Failover, c.Takeover} {
		replica, master := replicaOf(t, c, 100)
		operation(t, replica)
		if got := c.MasterOf(t, 100); got != replica {
			t.Errorf("the master is %s, expected %s", got, replica)
		}
		if got := c.ReplicasOf(t, replica); !slices.Equal(got, []*Node{master}) {
			t.Errorf("its replicas are %v", got)
		}
	}
}

func replication(t *testing.T, c *Cluster) {
	key := keyAt(100)
	replica, master := replicaOf(t, c, 100)
	for range 1000 {
		master.Do(t, "INCR", key)
	}
	c.AwaitReplication(t)
	replica.Do(t, "READONLY")
	if got := text(replica.Do(t, "GET", key)); got != "1000" {
		t.Errorf("the replica has %s", got)
	}
}

func killAndRestart(t *testing.T, c *Cluster) {
	replica, master := replicaOf(t, c, 100)
	master.Kill()
	if master.Running() {
		t.Error("it is running")
	}
	if got := c.AwaitMaster(t, 100, master); got != replica {
		t.Errorf("the new master is %s, expected %s", got, replica)
	}
	addr := master.Addr()
	c.Restart(t, master)
	if got := c.ReplicasOf(t, replica); !slices.Equal(got, []*Node{master}) || master.Addr() != addr {
		t.Errorf("the replicas are %v", got)
	}
}

func freeze(t *testing.T, c *Cluster) {
	n, _ := replicaOf(t, c, 100)
	n.Stop(t)
	if n.Running() {
		t.Error("it is running")
	}
	n.Cont(t)
	c.Settle(t)
}

func move(t *testing.T, c *Cluster) {
	n, _ := replicaOf(t, c, 100)
	before, id := n.Addr(), n.ID()
	c.Move(t, n)
	if got := text(n.Do(t, "CLUSTER", "MYID")); n.Addr() == before || got != id {
		t.Errorf("%s was at %s before, with the ID %s", n, before, id)
	}
}

func announce(t *testing.T, c *Cluster) {
	n := c.MasterOf(t, 100)
	other := c.MasterOf(t, Slots-1)
	proxy := faultproxy.Start(t, n.Addr(), faultproxy.Options{})
	_, text, _ := strings.Cut(proxy.Addr(), ":")
	port, err := strconv.Atoi(text)
	if err != nil {
		t.Fatal(err)
	}
	for _, test := range []struct {
		port int
		want string
	}{{port, proxy.Addr()}, {0, n.Addr()}} {
		c.Announce(t, n, test.port)
		if got := refused(t, other, "GET", keyAt(100)); got != "MOVED 100 "+test.want {
			t.Errorf("%s answers %s, expected %s", other, got, test.want)
		}
	}
	if proxy.Stats().Accepted == 0 {
		t.Error("the replica does not use the proxy")
	}
}

func addAndForget(t *testing.T, c *Cluster) {
	master := c.AddMaster(t)
	c.Migrate(t, master, 5000)
	replica := c.AddReplica(t, master)
	if got := c.ReplicasOf(t, c.MasterOf(t, 5000)); !slices.Equal(got, []*Node{replica}) {
		t.Errorf("its replicas are %v, expected %s", got, replica)
	}
	replica.Kill()
	c.Forget(t, replica)
	if slices.Contains(c.Nodes(), replica) {
		t.Error("it was not forgotten")
	}
	c.Settle(t)
}

// TestClusterWithPasswordAndTLS: a cluster without replicas whose connections are encrypted.
func TestClusterWithPasswordAndTLS(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{Masters: 2, Password: "secret", TLS: true})
	slot := c.Slot(t, "key")
	from := c.MasterOf(t, slot)
	to := c.Nodes()[1-slices.Index(c.Nodes(), from)]
	from.Do(t, "SET", "key", "v")
	c.Migrate(t, to, slot)
	if got := text(to.Do(t, "GET", "key")); got != "v" {
		t.Errorf("the key has %q", got)
	}
	if c, err := dial(to.Addr(), c.TLS(), "wrong"); err == nil {
		c.net.Close()
		t.Error("it accepts another password")
	}
	if c.TLS() == nil {
		t.Error("there is no configuration for clients")
	}
}

// TestPartitions: a master from which the others receive nothing is replaced and stops serving,
// whether or not it receives their messages. When the partition ends, it is a replica of its
// successor.
//
// mutant: testkit-partition-lets-everything-pass
func TestPartitions(t *testing.T) {
	t.Parallel()
	for name, part := range map[string]func(*Cluster, testing.TB, ...*Node){"both ways": (*Cluster).Partition, "one way": (*Cluster).Mute} {
		t.Run(name, func(t *testing.T) {
			t.Parallel()
			c := Start(t, Options{ReplicasPer: 1, Partitions: true, Args: []string{"--cluster-require-full-coverage", "no"}})
			replica, master := replicaOf(t, c, 100)
			part(c, t, master)
			c.await(t, replica.String()+" is a master", func() error {
				s, err := replica.self()
				if err == nil && s.master != "" {
					err = fmt.Errorf("it is a replica of %s", s.master)
				}
				return err
			})
			c.await(t, master.String()+" serves nothing", func() error {
				if _, err := master.Ask("SET", keyAt(100), "v"); err == nil {
					return fmt.Errorf("it has executed SET")
				}
				return nil
			})
			c.Heal(t)
			if got := c.ReplicasOf(t, replica); !slices.Equal(got, []*Node{master}) {
				t.Errorf("the replicas of %s are %v", replica, got)
			}
		})
	}
}

// TestOtherServers: other server programs provide what the package needs.
func TestOtherServers(t *testing.T) {
	t.Parallel()
	for _, binary := range binaries() {
		t.Run(binary, func(t *testing.T) {
			t.Parallel()
			c := Start(t, Options{ReplicasPer: 1, Binary: binary})
			slot := c.Slot(t, "key")
			from := c.MasterOf(t, slot)
			from.Do(t, "SET", "key", "v")
			to := c.MasterOf(t, (slot+Slots/3)%Slots)
			c.Migrate(t, to, slot)
			replica, _ := replicaOf(t, c, slot)
			c.Failover(t, replica)
			if got := text(replica.Do(t, "GET", "key")); got != "v" {
				t.Errorf("the key has %q", got)
			}
			to.Kill()
			c.Forget(t, to)
		})
	}
}

// recorder records the failure of a test.
type recorder struct {
	testing.TB
	failure string
}

func (r *recorder) Helper() {}
func (r *recorder) Fatalf(format string, args ...any) {
	r.failure = fmt.Sprintf(format, args...)
	runtime.Goexit()
}

// TestWaitsThatFailShowAllNodes: a failed wait reports what was waited for, why it failed, and the
// views of all nodes.
func TestWaitsThatFailShowAllNodes(t *testing.T) {
	t.Parallel()
	c := Start(t, Options{})
	dead := c.Nodes()[2]
	dead.Kill()
	r := &recorder{TB: t}
	done := make(chan struct{})
	// Ends when the wait fails; waited for on the next line.
	go func() {
		defer close(done)
		await(r, time.Millisecond, "pigs fly", c.State, func() error { return fmt.Errorf("they do not") })
	}()
	<-done
	for _, want := range append(c.Addrs(), "pigs fly", "they do not", "running: false", "cluster_state:", "myself,master") {
		if !strings.Contains(r.failure, want) {
			t.Errorf("%s is not in %s", want, r.failure)
		}
	}
}

// TestPortsThatAreTaken: a node is not mistaken for another server at its port.
func TestPortsThatAreTaken(t *testing.T) {
	testkit.NoLeaks(t)
	other := testkit.StartRedis(t)
	_, port, _ := strings.Cut(other.Addr, ":")
	taken, err := strconv.Atoi(port)
	if err != nil {
		t.Fatal(err)
	}
	c := &Cluster{options: Options{NodeTimeout: time.Second}, setup: newSetup(t, "", false)}
	n := c.newNode()
	if err := n.launchAt(taken, testkit.FreePort(t)); err == nil {
		t.Error("it listens on a port that was in use")
	}
	if n.process != nil && n.Running() {
		t.Error("it is running")
	}
	if err := n.launch(); err != nil {
		t.Error(err)
	}
}
