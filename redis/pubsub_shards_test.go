package redis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/redis/redistest"
)

// overAFake runs a test with a client of an in-memory cluster, in both versions of the protocol.
func overAFake(t *testing.T, o redistest.ClusterOptions, test func(t *testing.T, cluster *redistest.Cluster, c *redis.Client)) {
	for _, protocol := range []int{2, 3} {
		t.Run("RESP"+strconv.Itoa(protocol), func(t *testing.T) {
			testkit.NoLeaks(t)
			cluster := redistest.NewCluster(o)
			t.Cleanup(cluster.Close)
			test(t, cluster, connectFake(t, cluster, func(o *redis.ClusterOptions) { o.Protocol = protocol }))
		})
	}
}

// connectFake returns a client of an in-memory cluster. It is closed when the test ends.
func connectFake(t *testing.T, cluster *redistest.Cluster, change ...func(*redis.ClusterOptions)) *redis.Client {
	t.Helper()
	o := redis.ClusterOptions{Seeds: cluster.Addrs()[:1]}
	for _, f := range change {
		f(&o)
	}
	c, err := redis.ConnectCluster(t.Context(), o)
	must(t, err)
	t.Cleanup(func() { c.Close() })
	return c
}

// channelsAt returns n channels whose slots belong to a node, each in a different slot.
func channelsAt(cluster *redistest.Cluster, n int, node *redistest.Node) (names []string) {
	slots := make(map[int]bool)
	for i := 0; len(names) < n; i++ {
		name := "ch:" + strconv.Itoa(i)
		if slot := redistest.Slot(name); cluster.MasterOf(slot) == node && !slots[slot] {
			slots[slot] = true
			names = append(names, name)
		}
	}
	return names
}

// published checks the next message of a subscription.
func published(t *testing.T, s *redis.Subscription, channel, payload string) {
	t.Helper()
	if m := receive(t, s); m != (redis.Message{Channel: channel, Payload: payload, Shard: true}) {
		t.Fatalf("got %+v, want %q of %s", m, payload, channel)
	}
}

// gapOf checks that the next message says that messages of a channel may be missing.
func gapOf(t *testing.T, s *redis.Subscription, channel string) {
	t.Helper()
	if m := receive(t, s); m != (redis.Message{Kind: redis.Gap, Channel: channel, Shard: true}) {
		t.Fatalf("got %+v, want the gap of %s", m, channel)
	}
}

// spublish publishes to a channel of a shard and checks the number of subscribers.
func spublish(t *testing.T, c *redis.Client, channel, payload string, clients int64) {
	t.Helper()
	if n, err := c.SPublish(t.Context(), channel, payload); n != clients || err != nil {
		t.Fatalf("%s: %d subscribers, %v; want %d", channel, n, err, clients)
	}
}

// TestShardChannelsOfSeveralSlots: one subscription has channels in all shards. Subscriptions and
// messages are sent to the master of the slot concurrently, with one connection each.
func TestShardChannelsOfSeveralSlots(t *testing.T) {
	overAFake(t, redistest.ClusterOptions{ReplicasPer: 1}, func(t *testing.T, cluster *redistest.Cluster, c *redis.Client) {
		var names []string
		for i := range 30 {
			names = append(names, "ch:"+strconv.Itoa(i), "{ch:"+strconv.Itoa(i)+"}:2")
		}
		s, err := c.Subscribe(t.Context(), redis.Topics{Shards: names})
		must(t, err)
		defer s.Close()
		for _, name := range names {
			spublish(t, c, name, "to "+name, 1)
			published(t, s, name, "to "+name)
		}
		var masters []string
		for i, n := range cluster.Nodes() {
			if i < 3 {
				masters = append(masters, n.Addr())
			}
			for _, args := range n.Seen() {
				for _, name := range args[1:min(len(args), 2)] {
					if slot := redistest.Slot(name); cluster.MasterOf(slot) != n {
						t.Errorf("node %d got %q, whose slot %d is elsewhere", i, args, slot)
					}
				}
			}
		}
		slices.Sort(masters)
		if got := redis.ShardLines(c); !slices.Equal(got, masters) {
			t.Errorf("connections to %v, want one to each of %v", got, masters)
		}
		// The node is notified when the last subscription leaves a channel.
		o, err := c.Subscribe(t.Context(), redis.Topics{Shards: names[:1]})
		must(t, err)
		defer o.Close()
		s.Remove(redis.Topics{Shards: names})
		spublish(t, c, names[0], "other's", 1)
		published(t, o, names[0], "other's")
		testkit.Eventually(t, 10*time.Second, func() error {
			if n, err := c.SPublish(t.Context(), names[2], "nobody's"); n > 0 || err != nil {
				return fmt.Errorf("%d subscribers are left, %w", n, err)
			}
			return nil
		})
	})
}

// TestShardChannelFollowsItsSlot: a channel whose slot moves is subscribed to at the new owner,
// with a Gap; other channels have no Gap.
func TestShardChannelFollowsItsSlot(t *testing.T) {
	overAFake(t, redistest.ClusterOptions{}, func(t *testing.T, cluster *redistest.Cluster, c *redis.Client) {
		names := channelsAt(cluster, 2, cluster.Nodes()[0])
		moving, staying := names[0], names[1]
		s, err := c.Subscribe(t.Context(), redis.Topics{Shards: names})
		must(t, err)
		defer s.Close()
		o, err := c.Subscribe(t.Context(), redis.Topics{Shards: []string{moving}})
		must(t, err)
		defer o.Close()
		for round := range 6 {
			cluster.MoveSlots(cluster.Nodes()[(round+1)%3], redistest.Slot(moving))
			gapOf(t, s, moving)
			gapOf(t, o, moving)
			want := strconv.Itoa(round)
			spublish(t, c, moving, want, 1)
			published(t, s, moving, want)
			published(t, o, moving, want)
			spublish(t, c, staying, want, 1)
			published(t, s, staying, want)
		}
	})
}

// TestShardChannelOfASingleServerEndsWithItsSlot: a client of a single server does not follow the
// slot, so its subscriptions fail. Other channels are not affected.
//
// mutant: redis-shard-channel-lost-silently
func TestShardChannelOfASingleServerEndsWithItsSlot(t *testing.T) {
	cluster := redistest.NewCluster(redistest.ClusterOptions{})
	t.Cleanup(cluster.Close)
	from := cluster.Nodes()[0]
	names := channelsAt(cluster, 2, from)
	c, err := redis.Connect(t.Context(), redis.Options{Addr: from.Addr()})
	must(t, err)
	defer c.Close()
	s, err := c.Subscribe(t.Context(), redis.Topics{Shards: names[:1]})
	must(t, err)
	defer s.Close()
	other, err := c.Subscribe(t.Context(), redis.Topics{Shards: names[1:]})
	must(t, err)
	defer other.Close()

	cluster.MoveSlots(cluster.Nodes()[1], redistest.Slot(names[0]))
	ctx, cancel := context.WithTimeout(t.Context(), 30*time.Second)
	defer cancel()
	if _, err = s.Receive(ctx); err == nil || !strings.Contains(err.Error(), "has moved to another node") {
		t.Fatalf("after the slot moved: %v", err)
	}
	_, err = c.SPublish(t.Context(), names[1], "more")
	must(t, err)
	published(t, other, names[1], "more")
}

// TestShardChannelsOfAFailover: the channels of a shard are subscribed to at its new master,
// whether or not the old one continues as a replica.
func TestShardChannelsOfAFailover(t *testing.T) {
	overAFake(t, redistest.ClusterOptions{ReplicasPer: 1}, func(t *testing.T, cluster *redistest.Cluster, c *redis.Client) {
		old := cluster.Nodes()[0]
		names := channelsAt(cluster, 3, old)
		s, err := c.Subscribe(t.Context(), redis.Topics{Shards: names})
		must(t, err)
		defer s.Close()
		isAt := func(master *redistest.Node) {
			t.Helper()
			testkit.Eventually(t, 20*time.Second, func() error {
				if got := redis.ShardLines(c); !slices.Equal(got, []string{master.Addr()}) {
					return fmt.Errorf("connections to %v, want one to %s", got, master.Addr())
				}
				return nil
			})
			for _, name := range names {
				testkit.Eventually(t, 20*time.Second, func() error {
					if !redis.InForce(c, name) {
						return errors.New(name + " is not confirmed")
					}
					return nil
				})
				spublish(t, c, name, master.Addr(), 1)
			}
			gaps, got := 0, 0
			for got < len(names) {
				switch m := receive(t, s); {
				case m.Kind == redis.Gap && got == 0:
					gaps++
				case m.Payload == master.Addr() && m.Channel == names[got]:
					got++
				default:
					t.Fatalf("after %d gaps and %d messages: %+v", gaps, got, m)
				}
			}
			if gaps == 0 {
				t.Error("no gap")
			}
		}
		replica := cluster.ReplicasOf(old)[0]
		cluster.Failover(replica)
		isAt(replica)
		replica.Stop()
		cluster.Failover(old)
		isAt(old)
	})
}

// TestLossOfANodeConcernsItsChannels: if the connection to a node is lost, channels at other nodes
// lose no message.
func TestLossOfANodeConcernsItsChannels(t *testing.T) {
	overAFake(t, redistest.ClusterOptions{}, func(t *testing.T, cluster *redistest.Cluster, c *redis.Client) {
		lost := channelsAt(cluster, 1, cluster.Nodes()[0])[0]
		safe := channelsAt(cluster, 1, cluster.Nodes()[1])[0]
		s, err := c.Subscribe(t.Context(), redis.Topics{Shards: []string{lost, safe}})
		must(t, err)
		defer s.Close()
		for round := range 5 {
			cluster.Nodes()[0].HangUp()
			next, gap := 0, false
			for i := 0; !gap || next < 50; i++ {
				if i < 50 {
					spublish(t, c, safe, fmt.Sprint(round, " ", i), 1)
				}
				switch m := receive(t, s); {
				case m.Channel == safe && m.Payload == fmt.Sprint(round, " ", next):
					next++
				case m.Kind == redis.Gap && m.Channel == lost && !gap:
					gap = true
				default:
					t.Fatalf("round %d: message %d is %+v", round, next, m)
				}
			}
			spublish(t, c, lost, "after", 1)
			published(t, s, lost, "after")
		}
	})
}

// TestShardChannelWhileTheClusterIsDown: while the cluster is down, Subscribe waits like a call,
// for at most DialTimeout.
func TestShardChannelWhileTheClusterIsDown(t *testing.T) {
	overAFake(t, redistest.ClusterOptions{}, func(t *testing.T, cluster *redistest.Cluster, c *redis.Client) {
		hasty := connectFake(t, cluster, func(o *redis.ClusterOptions) { o.DialTimeout = 300 * time.Millisecond })
		cluster.SetDown(true)
		_, err := hasty.Subscribe(t.Context(), redis.Topics{Shards: []string{"ch"}})
		if e, ok := errors.AsType[*redis.ServerError](err); !ok || e.Code != "CLUSTERDOWN" || slipstream.OutcomeOf(err) != slipstream.Refused {
			t.Errorf("a cluster that stays down: %v", err)
		}
		if n := redis.TopicCount(hasty); n != 0 {
			t.Errorf("%d topics are left", n)
		}
		master := cluster.MasterOf(redistest.Slot("ch"))
		before := len(master.Seen())
		go func() { // ends when the subscription was refused twice, or at the latest with the test
			for len(master.Seen()) < before+2 && t.Context().Err() == nil {
				time.Sleep(time.Millisecond)
			}
			cluster.SetDown(false)
		}()
		s, err := c.Subscribe(t.Context(), redis.Topics{Shards: []string{"ch"}})
		must(t, err)
		defer s.Close()
		spublish(t, c, "ch", "up", 1)
		published(t, s, "ch", "up")
	})
}

// TestSubscribeToALostChannelWaits: a subscription to a channel that another subscription has lost
// is confirmed when the channel is, and has no Gap.
func TestSubscribeToALostChannelWaits(t *testing.T) {
	joins := func(t *testing.T, c *redis.Client, topics redis.Topics, stop, start func()) {
		s, err := c.Subscribe(t.Context(), topics)
		must(t, err)
		defer s.Close()
		stop()
		testkit.Eventually(t, 10*time.Second, func() error {
			if redis.InForce(c, "ch") {
				return errors.New("the channel is still confirmed")
			}
			return nil
		})
		ctx, cancel := context.WithTimeout(t.Context(), 50*time.Millisecond)
		defer cancel()
		if _, err := c.Subscribe(ctx, topics); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("without a server: %v", err)
		}
		start()
		o, err := c.Subscribe(t.Context(), topics)
		must(t, err)
		defer o.Close()
		if topics.Shards != nil {
			spublish(t, c, "ch", "x", 1)
		} else {
			testkit.Eventually(t, 10*time.Second, func() error { _, err := c.Publish(t.Context(), "ch", "x"); return err })
		}
		if first, second := receive(t, s), receive(t, s); first.Kind != redis.Gap || second.Payload != "x" {
			t.Errorf("the first subscription got %+v and %+v", first, second)
		}
		if m := receive(t, o); m.Payload != "x" {
			t.Errorf("the second one got %+v", m)
		}
	}
	t.Run("one server", func(t *testing.T) {
		testkit.NoLeaks(t)
		server := testkit.StartRedis(t)
		joins(t, connect(t, redis.Options{Addr: server.Addr}), redis.Topics{Channels: []string{"ch"}}, server.Kill, func() { server.Restart(t) })
	})
	t.Run("cluster", func(t *testing.T) {
		overAFake(t, redistest.ClusterOptions{}, func(t *testing.T, cluster *redistest.Cluster, c *redis.Client) {
			master := cluster.MasterOf(redistest.Slot("ch"))
			joins(t, c, redis.Topics{Shards: []string{"ch"}}, master.Stop, master.Start)
		})
	})
}

// TestShardChannelBeforeTheTopology: a client that does not wait for the cluster subscribes once
// the topology is known, without a Gap.
func TestShardChannelBeforeTheTopology(t *testing.T) {
	overAFake(t, redistest.ClusterOptions{}, func(t *testing.T, cluster *redistest.Cluster, _ *redis.Client) {
		c := connectFake(t, cluster, func(o *redis.ClusterOptions) { o.NoWait = true })
		names := []string{channelsAt(cluster, 1, cluster.Nodes()[1])[0], channelsAt(cluster, 1, cluster.Nodes()[2])[0]}
		s, err := c.Subscribe(t.Context(), redis.Topics{Shards: names})
		must(t, err)
		defer s.Close()
		for _, name := range names {
			spublish(t, c, name, "x", 1)
			published(t, s, name, "x")
		}
	})
}

// TestShardSubscriptionsEnd: a connection that is no longer needed is not reopened, and Close ends
// calls that wait for a node.
func TestShardSubscriptionsEnd(t *testing.T) {
	overAFake(t, redistest.ClusterOptions{}, func(t *testing.T, cluster *redistest.Cluster, c *redis.Client) {
		names := []string{channelsAt(cluster, 1, cluster.Nodes()[0])[0], channelsAt(cluster, 1, cluster.Nodes()[1])[0]}
		s, err := c.Subscribe(t.Context(), redis.Topics{Shards: names})
		must(t, err)
		s.Remove(redis.Topics{Shards: names[:1]})
		cluster.Nodes()[0].HangUp()
		cluster.Nodes()[1].HangUp()
		gapOf(t, s, names[1])
		testkit.Eventually(t, 10*time.Second, func() error {
			if got := redis.ShardLines(c); !slices.Equal(got, []string{cluster.Nodes()[1].Addr()}) {
				return fmt.Errorf("connections to %v", got)
			}
			return nil
		})
		cluster.Nodes()[1].Stop()
		joining := make(chan error, 1)
		go func() { // ends with the client
			_, err := c.Subscribe(context.Background(), redis.Topics{Shards: names[1:]})
			joining <- err
		}()
		testkit.Eventually(t, 10*time.Second, func() error {
			if redis.InForce(c, names[1]) {
				return errors.New("the channel is still confirmed")
			}
			return nil
		})
		must(t, c.Close())
		if err := <-joining; err != nil && slipstream.OutcomeOf(err) != slipstream.Closed {
			t.Errorf("a call that waited for a node: %v", err)
		}
		for {
			m, err := s.Receive(t.Context())
			if err == nil && m.Kind == redis.Gap {
				continue
			}
			if slipstream.OutcomeOf(err) != slipstream.Closed {
				t.Errorf("got %+v, %v", m, err)
			}
			break
		}
	})
}
