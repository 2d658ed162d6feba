package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/internal/testkit/rediscluster"
	"github.com/slipstream-go/slipstream/redis"
)

// An audience receives the numbered messages of a publisher. It checks that each message belongs to
// a channel of its subscription, that the messages of a channel come in order, and that there is a
// Gap where one is missing.
type audience struct {
	name   string
	t      *testing.T
	s      *redis.Subscription
	relays bool // the servers forward messages to each other, so their order around a Gap is unknown

	mu sync.Mutex
	// Guarded by mu.
	last map[string]int  // number of the latest message of each channel
	gap  map[string]bool // there was a Gap since then
	gaps map[string]int  // number of Gaps by the channel that they named; "" for those that named none
	lost map[string]int  // number of missing messages of each channel
}

// listen starts an audience that ends with the returned function.
func listen(t *testing.T, name string, c *redis.Client, topics redis.Topics, relays bool) (*audience, func()) {
	t.Helper()
	s, err := c.Subscribe(t.Context(), topics)
	must(t, err)
	a := &audience{name: name, t: t, s: s, relays: relays, last: make(map[string]int), gap: make(map[string]bool), gaps: make(map[string]int), lost: make(map[string]int)}
	for _, channel := range append(topics.Shards, topics.Channels...) {
		a.last[channel] = -1
	}
	var receiver sync.WaitGroup
	receiver.Go(func() { // ends when the subscription is closed
		for m, err := range s.Messages(context.Background()) {
			if err != nil {
				t.Errorf("%s: %v", name, err)
				return
			}
			a.hear(m)
		}
	})
	return a, func() {
		s.Close()
		receiver.Wait()
	}
}

func (a *audience) hear(m redis.Message) {
	a.mu.Lock()
	defer a.mu.Unlock()
	if m.Kind == redis.Gap {
		a.gaps[m.Channel]++
		for channel := range a.last {
			if m.Channel == "" || m.Channel == channel {
				a.gap[channel] = true
			}
		}
		return
	}
	last, known := a.last[m.Channel]
	channel, number, _ := strings.Cut(m.Payload, "#")
	n, err := strconv.Atoi(number)
	switch {
	case !known || channel != m.Channel || err != nil:
		a.t.Errorf("%s: %+v does not belong to the subscription", a.name, m)
	case a.relays && a.gaps[channel] > 0:
		a.last[channel] = max(n, last)
		return
	case n <= last:
		a.t.Errorf("%s: message %d of %s after %d", a.name, n, channel, last)
	case n > last+1 && last >= 0 && !a.gap[channel]:
		a.t.Errorf("%s: message %d of %s after %d, without a gap", a.name, n, channel, last)
	}
	if last >= 0 {
		a.lost[m.Channel] += n - last - 1
	}
	a.last[m.Channel], a.gap[m.Channel] = n, false
}

// has waits until the audience has received a message of a channel with the number n or higher.
func (a *audience) has(channel string, n int) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	if a.last[channel] < n {
		return fmt.Errorf("%s has message %d of %s, want %d", a.name, a.last[channel], channel, n)
	}
	return nil
}

// publish publishes the nth message to each channel, and returns the first error.
func publish(ctx context.Context, c *redis.Client, n int, topics redis.Topics) (problem error) {
	for _, channel := range topics.Shards {
		if _, err := c.SPublish(ctx, channel, channel+"#"+strconv.Itoa(n)); err != nil && problem == nil {
			problem = err
		}
	}
	for _, channel := range topics.Channels {
		if _, err := c.Publish(ctx, channel, channel+"#"+strconv.Itoa(n)); err != nil && problem == nil {
			problem = err
		}
	}
	return problem
}

// A publisher repeatedly publishes to all topics.
type publisher struct {
	stop func() (next int) // ends it, and returns the number of the next message
	next func() int        // the number of the next message
}

func startPublisher(t *testing.T, c *redis.Client, topics redis.Topics, mayFail bool) publisher {
	stop := make(chan struct{})
	var running sync.WaitGroup
	var n atomic.Int64
	running.Go(func() { // ends with stop
		for {
			select {
			case <-stop:
				return
			case <-time.After(time.Millisecond):
			}
			if err := publish(context.Background(), c, int(n.Load()), topics); err != nil && !mayFail {
				t.Errorf("publishing: %v", err)
			}
			n.Add(1)
		}
	})
	next := func() int { return int(n.Load()) }
	return publisher{next: next, stop: func() int {
		close(stop)
		running.Wait()
		return next()
	}}
}

// ofSeveralSlots returns topics in all shards of a cluster.
func ofSeveralSlots() (topics redis.Topics) {
	for i := range 12 {
		topics.Shards = append(topics.Shards, "ch:"+strconv.Itoa(i))
	}
	topics.Channels = []string{"news"}
	return topics
}

// TestShardChannelsWhileSlotsMigrate migrates the slots of some channels while messages are
// published, in both versions of the protocol at the same time.
func TestShardChannelsWhileSlotsMigrate(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{})
	topics := ofSeveralSlots()
	var audiences []*audience
	for protocol := 2; protocol <= 3; protocol++ {
		c := connectCluster(t, cluster, func(o *redis.ClusterOptions) { o.Protocol = protocol })
		a, stop := listen(t, "RESP"+strconv.Itoa(protocol), c, topics, false)
		defer stop()
		audiences = append(audiences, a)
	}
	p := connectCluster(t, cluster)
	messages := startPublisher(t, p, topics, false)
	all := func(channel string, n int) {
		t.Helper()
		testkit.Eventually(t, 20*time.Second, func() error {
			for _, a := range audiences {
				if err := a.has(channel, n); err != nil {
					return err
				}
			}
			return nil
		})
	}
	const moves = 4
	for range moves {
		for _, moving := range topics.Shards[:2] {
			slot := cluster.Slot(t, moving)
			from, to := cluster.MasterOf(t, slot), cluster.Nodes()[0]
			if to == from {
				to = cluster.Nodes()[1]
			}
			m := cluster.BeginMigration(t, slot, to)
			all(moving, messages.next()) // messages also arrive while it moves
			m.Finish(t)
			all(moving, messages.next()+1)
		}
	}
	last := messages.stop()
	must(t, publish(t.Context(), p, last, topics))
	for _, channel := range append(topics.Shards, topics.Channels...) {
		all(channel, last)
	}
	for _, a := range audiences {
		a.mu.Lock()
		for _, channel := range topics.Shards[:2] {
			if n := a.gaps[channel]; n < moves || n > 3*moves {
				t.Errorf("%s: %d gaps of %s, which has moved %d times", a.name, n, channel, moves)
			}
		}
		for _, channel := range append(topics.Shards[2:], "") {
			if a.gaps[channel] > 0 || a.lost[channel] > 0 {
				t.Errorf("%s: %d gaps of %q, which has not moved, %d messages are missing", a.name, a.gaps[channel], channel, a.lost[channel])
			}
		}
		t.Logf("%s: gaps %v, lost %v, %d messages", a.name, a.gaps, a.lost, a.last["news"])
		a.mu.Unlock()
	}
}

// TestShardChannelsWhenAMasterDies kills a master while messages are published: its replica takes
// over, and channels of other shards lose no messages.
func TestShardChannelsWhenAMasterDies(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1, Args: []string{"--cluster-require-full-coverage", "no"}})
	topics := ofSeveralSlots()
	var audiences []*audience
	for protocol := 2; protocol <= 3; protocol++ {
		c := connectCluster(t, cluster, func(o *redis.ClusterOptions) { o.Protocol = protocol })
		a, stop := listen(t, "RESP"+strconv.Itoa(protocol), c, topics, false)
		defer stop()
		audiences = append(audiences, a)
	}
	p := connectCluster(t, cluster)
	old := cluster.MasterOf(t, cluster.Slot(t, topics.Shards[0]))
	messages := startPublisher(t, p, topics, true)
	every := func(n int) {
		t.Helper()
		testkit.Eventually(t, 30*time.Second, func() error {
			for _, a := range audiences {
				for _, channel := range append(topics.Shards, topics.Channels...) {
					if err := a.has(channel, n); err != nil {
						return err
					}
				}
			}
			return nil
		})
	}
	every(10)
	masters := make(map[string]*rediscluster.Node)
	for _, channel := range topics.Shards {
		masters[channel] = cluster.MasterOf(t, cluster.Slot(t, channel))
	}
	old.Kill()
	cluster.AwaitMaster(t, cluster.Slot(t, topics.Shards[0]), old)
	every(messages.next() + 10)
	last := messages.stop()
	testkit.Eventually(t, 20*time.Second, func() error {
		if err := publish(t.Context(), p, last, topics); err != nil {
			return err
		}
		last++
		return nil
	})
	every(last - 1)
	for _, a := range audiences {
		a.mu.Lock()
		for channel, master := range masters {
			gaps, lost := a.gaps[channel], a.lost[channel]
			switch {
			case master == old && gaps == 0:
				t.Errorf("%s: no gap of %s, whose master was killed", a.name, channel)
			case master != old && gaps+lost > 0 && cluster.MasterOf(t, cluster.Slot(t, channel)) == master:
				// If other nodes have been marked as failed, too, the machine was just too busy.
				t.Errorf("%s: %d gaps of %s, whose master was not killed, %d messages are missing", a.name, gaps, channel, lost)
			}
		}
		t.Logf("%s: gaps %v, lost %v", a.name, a.gaps, a.lost)
		a.mu.Unlock()
	}
}

// TestShardChannelsOfARealFailover: the old master continues as a replica, and the channels are at
// the new one. Messages published at one of the two before the failover may arrive from both.
func TestShardChannelsOfARealFailover(t *testing.T) {
	cluster := rediscluster.Start(t, rediscluster.Options{ReplicasPer: 1})
	topics := redis.Topics{Shards: ofSeveralSlots().Shards}
	c := connectCluster(t, cluster)
	a, stop := listen(t, "subscriber", c, topics, true)
	defer stop()
	p := connectCluster(t, cluster)
	messages := startPublisher(t, p, topics, false)
	old := cluster.MasterOf(t, cluster.Slot(t, topics.Shards[0]))
	cluster.Failover(t, cluster.ReplicasOf(t, old)[0])
	testkit.Eventually(t, 20*time.Second, func() error {
		for _, addr := range redis.ShardLines(c) {
			if addr == old.Addr() {
				return errors.New("channels are still at the old master")
			}
		}
		return nil
	})
	last := messages.stop()
	must(t, publish(t.Context(), p, last, topics))
	testkit.Eventually(t, 20*time.Second, func() error {
		for _, channel := range topics.Shards {
			if err := a.has(channel, last); err != nil {
				return err
			}
		}
		return nil
	})
	a.mu.Lock()
	defer a.mu.Unlock()
	t.Logf("gaps %v", a.gaps)
}
