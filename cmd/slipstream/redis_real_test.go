package main

import (
	"encoding/json"
	"slices"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/blackbox"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// TestRedisClusterOfRealNodes examines, over TLS and with a password, a cluster of real servers
// in which one slot is being migrated and one replica is dead.
func TestRedisClusterOfRealNodes(t *testing.T) {
	const password = "open-sesame"
	cluster := rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1, Password: password, TLS: true, NodeTimeout: 10 * time.Second})
	args := []string{"redis", "cluster", cluster.Addrs()[0], "--tls-ca", cluster.AuthorityFile(), "--password-file", blackbox.WriteFile(t, "password", password+"\n")}
	look := func(code int, more ...string) (r clusterReport) {
		t.Helper()
		out := blackbox.Expect(t, code, "", "", slices.Concat(args, []string{"--json", "--key", "user:1"}, more)...)
		if err := json.Unmarshal([]byte(out.Stdout), &r); err != nil {
			t.Fatalf("%v: %s%s", err, out.Stdout, out.Stderr)
		}
		return r
	}
	cluster.AwaitReplication(t)
	r := look(exitOK)
	if r.Topology.Slots != allSlots || r.Topology.Source != "CLUSTER SHARDS" || r.Topology.Epoch == 0 || len(r.Shards) != 3 || len(r.Nodes) != 6 || r.Views.Answered != 6 || len(r.Views.Slots) > 0 {
		t.Errorf("a healthy cluster: %+v", r)
	}
	for _, n := range r.Nodes {
		if n.State != "ok" || n.Version == "" || n.Offset == nil || n.RoundTrip == nil || n.RoundTrip.Max <= 0 || n.Coverage != "yes" || (n.Role == "replica") != (n.Lag != nil) || (n.Role == "replica") != (n.Link == "up") {
			t.Errorf("a healthy node: %+v", n)
		}
	}
	slot := cluster.Slot(t, "user:1")
	from := cluster.MasterOf(t, slot)
	if r.Key.Slot != slot || r.Key.Master != from.Addr() || !slices.Equal(r.Key.Readers, []string{from.Addr()}) {
		t.Errorf("slot %d of %s: %+v", slot, from.Addr(), *r.Key)
	}
	replica := cluster.ReplicasOf(t, from)[0]
	if r := look(exitOK, "--read-from", "replica"); !slices.Equal(r.Key.Readers, []string{replica.Addr()}) {
		t.Errorf("reads from replicas: %+v, expected %s", *r.Key, replica.Addr())
	}

	to := cluster.MasterOf(t, (slot+allSlots/2)%allSlots)
	migration := cluster.BeginMigration(t, slot, to)
	if want := (movingReport{slot, from.Addr(), to.Addr(), true, true}); !slices.Equal(look(exitOK).Moving, []movingReport{want}) {
		t.Errorf("moving slots: %+v, expected %+v", look(exitOK).Moving, want)
	}
	migration.Finish(t)
	if r := look(exitOK); r.Key.Master != to.Addr() || len(r.Moving) > 0 {
		t.Errorf("after the migration: %+v, moving %+v", *r.Key, r.Moving)
	}

	replica.Kill()
	r = look(exitIncomplete)
	at := slices.IndexFunc(r.Nodes, func(n nodeReport) bool { return n.Addr == replica.Addr() })
	if at < 0 || r.Nodes[at].State != "unreachable" || r.Nodes[at].Error == "" {
		t.Errorf("after a replica has died: %+v", r.Nodes)
	}
	args[len(args)-1] = blackbox.WriteFile(t, "wrong", "close-sesame\n")
	blackbox.Expect(t, exitUnreachable, "", "WRONGPASS", args...)
}

// TestRedisClusterOfOneServer: a Redis that is not a node of a cluster is distinguished
// from one that is.
func TestRedisClusterOfOneServer(t *testing.T) {
	server := testkit.StartRedis(t)
	blackbox.Expect(t, exitFailure, "", server.Addr+" is a Redis that is not a node of a cluster", "redis", "cluster", server.Addr)
	c, err := redis.Connect(t.Context(), redis.Options{Addr: server.Addr})
	if err != nil {
		t.Fatal(err)
	}
	defer c.Close()
	if err := c.Do(t.Context(), nil, redis.Cmd("CONFIG", "SET", "requirepass", "open-sesame")); err != nil {
		t.Fatal(err)
	}
	blackbox.Expect(t, exitUnreachable, "", "the server requires a password", "redis", "cluster", server.Addr)
}
