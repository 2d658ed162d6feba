//go:build unix

package redis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net"
	"regexp"
	"slices"
	"strconv"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis"
)

// zonedConn is a connection that adds a zone to each node in replies to CLUSTER SHARDS, as Valkey does, and
// delays what it receives.
type zonedConn struct {
	net.Conn
	zones map[string]string // by ID of the node
	delay time.Duration

	in, out []byte
	scanner *resp.Scanner
}

// shardNode matches the start of a node in a reply to CLUSTER SHARDS: the number of its fields, or
// twice that, and its ID.
var shardNode = regexp.MustCompile(`([*%])(\d+)\r\n\$2\r\nid\r\n\$40\r\n([0-9a-f]{40})\r\n`)

func (c *zonedConn) Read(b []byte) (int, error) {
	for len(c.out) == 0 {
		chunk := make([]byte, 16<<10)
		n, err := c.Conn.Read(chunk)
		if err != nil {
			return 0, err
		}
		c.in = append(c.in, chunk[:n]...)
		for len(c.in) > 0 {
			size, verdict, err := c.scanner.Scan(c.in)
			if err != nil {
				return 0, err
			}
			if verdict == resp.More {
				break
			}
			c.out = append(c.out, c.zoned(c.in[:size])...)
			c.in = c.in[size:]
		}
		time.Sleep(c.delay)
	}
	n := copy(b, c.out)
	c.out = c.out[n:]
	return n, nil
}

// zoned adds zones to a reply, if it is one to CLUSTER SHARDS.
func (c *zonedConn) zoned(frame []byte) []byte {
	if !bytes.Contains(frame[:min(len(frame), 100)], []byte("$5\r\nslots\r\n")) {
		return frame
	}
	return shardNode.ReplaceAllFunc(frame, func(begin []byte) []byte {
		m := shardNode.FindSubmatch(begin)
		fields, _ := strconv.Atoi(string(m[2]))
		if fields++; string(m[1]) == "*" {
			fields++
		}
		zone := c.zones[string(m[3])]
		return fmt.Appendf(nil, "%s%d\r\n$17\r\navailability-zone\r\n$%d\r\n%s\r\n$2\r\nid\r\n$40\r\n%s\r\n", m[1], fields, len(zone), zone, m[3])
	})
}

// connectZoned returns a client of a cluster, with zones and delays for its nodes, by address.
func connectZoned(t *testing.T, cluster *rediscluster.Cluster, zones map[string]string, delays map[string]time.Duration, change func(*redis.ClusterOptions)) *redis.Client {
	t.Helper()
	byID := make(map[string]string)
	for _, n := range cluster.Nodes() {
		byID[n.ID()] = zones[n.Addr()]
	}
	c := connectCluster(t, cluster, func(o *redis.ClusterOptions) {
		change(o)
		o.Dialer = func(ctx context.Context, network, addr string) (net.Conn, error) {
			conn, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err != nil {
				return nil, err
			}
			return &zonedConn{Conn: conn, zones: byID, delay: delays[addr], scanner: resp.NewScanner(resp.Limits{})}, nil
		}
	})
	testkit.Eventually(t, 20*time.Second, func() error {
		for _, n := range c.Nodes() {
			if n.Stats.Connected == 0 {
				return errors.New("no connection to " + n.Addr)
			}
		}
		return nil
	})
	return c
}

// readAt checks that the given nodes, and no others, execute reads.
func readAt(t *testing.T, cluster *rediscluster.Cluster, c *redis.Client, nodes ...*rediscluster.Node) {
	t.Helper()
	testkit.Eventually(t, 20*time.Second, func() error { // until earlier choices have expired
		before := make(map[*rediscluster.Node]int64)
		for _, n := range cluster.Nodes() {
			if n.Running() {
				before[n] = n.Commands(t)["get"]
			}
		}
		for i := range 30 {
			if _, _, err := c.Get(t.Context(), "key:"+strconv.Itoa(i)); err != nil {
				return err
			}
		}
		for n, gets := range before {
			made := n.Commands(t)["get"] - gets
			if want := slices.Contains(nodes, n); made > 0 != want {
				return fmt.Errorf("%v executed %d reads; want reads by %v", n, made, nodes)
			}
		}
		return nil
	})
}

// TestReadsStayInTheZone: reads are executed in the zone of the program, by replicas first, and in another
// zone only if no node in that zone can be reached.
//
// mutant: redis-zone-not-told
func TestReadsStayInTheZone(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{Masters: 2, ReplicasPer: 2})
	nodes := cluster.Nodes()
	masters := nodes[:2]
	zones := map[string]string{masters[0].Addr(): "north", masters[1].Addr(): "north"}
	var west, east []*rediscluster.Node
	for _, master := range masters {
		replicas := cluster.ReplicasOf(t, master)
		if len(replicas) != 2 {
			t.Fatalf("%d replicas\n%s", len(replicas), cluster.State())
		}
		west, east = append(west, replicas[0]), append(east, replicas[1])
		zones[replicas[0].Addr()], zones[replicas[1].Addr()] = "west", "east"
	}
	client := func(zone string) *redis.Client {
		return connectZoned(t, cluster, zones, nil, func(o *redis.ClusterOptions) { o.ReadFrom, o.Zone = redis.ReadZone, zone })
	}
	c := client("west")
	for _, n := range c.Nodes() {
		if n.Zone != zones[n.Addr] {
			t.Errorf("the client reports %+v, which is in %s", n, zones[n.Addr])
		}
	}
	readAt(t, cluster, c, west...)
	readAt(t, cluster, client("east"), east...)
	readAt(t, cluster, client("north"), masters...)
	for _, n := range west {
		n.Kill()
	}
	readAt(t, cluster, c, east...)
}

// TestReadsAtTheNearest: reads are executed by the nodes with the shortest round-trip time, masters or
// replicas.
func TestReadsAtTheNearest(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{Masters: 2, ReplicasPer: 1})
	masters, replicas := cluster.Nodes()[:2], cluster.Nodes()[2:]
	const far = 30 * time.Millisecond
	late := func(nodes []*rediscluster.Node) *redis.Client {
		delays := make(map[string]time.Duration)
		for _, n := range nodes {
			delays[n.Addr()] = far
		}
		return connectZoned(t, cluster, nil, delays, func(o *redis.ClusterOptions) { o.ReadFrom = redis.ReadNearest })
	}
	readAt(t, cluster, late(replicas), masters...)
	readAt(t, cluster, late(masters), replicas...)
}
