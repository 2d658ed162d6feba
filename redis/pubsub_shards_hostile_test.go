package redis_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/slipstream-go/slipstream/redis"
	"github.com/slipstream-go/slipstream/redis/redistest"
)

// pushes returns messages as a server sends them, each given as words, in a version of the
// protocol.
func pushes(protocol int, messages ...string) redistest.Raw {
	var b strings.Builder
	for _, m := range messages {
		words := strings.Fields(m)
		fmt.Fprintf(&b, "%c%d\r\n", "*>"[protocol-2], len(words))
		for _, word := range words {
			fmt.Fprintf(&b, "$%d\r\n%s\r\n", len(word), word)
		}
	}
	return redistest.Raw(b.String())
}

// TestNodeSpeaksOfChannelsOfOthers: a node that sends messages about channels that were never
// subscribed to, or that are subscribed to at another node, has no effect.
func TestNodeSpeaksOfChannelsOfOthers(t *testing.T) {
	for protocol := 2; protocol <= 3; protocol++ {
		cluster := redistest.NewCluster(redistest.ClusterOptions{})
		defer cluster.Close()
		evil, honest := channelsAt(cluster, 1, cluster.Nodes()[0])[0], channelsAt(cluster, 1, cluster.Nodes()[1])[0]
		c := connectFake(t, cluster, func(o *redis.ClusterOptions) { o.Protocol = protocol })
		s, err := c.Subscribe(t.Context(), redis.Topics{Shards: []string{honest}})
		must(t, err)
		defer s.Close()
		cluster.Nodes()[0].Handle("SSUBSCRIBE", func(*redistest.Conn, []string) any {
			return pushes(protocol, "smessage "+evil+" early", "ssubscribe "+evil+" 1", "smessage never forged", "smessage "+honest+" forged",
				"message "+evil+" forged", "sunsubscribe never 0", "sunsubscribe "+honest+" 0", "ssubscribe "+honest+" 1", "smessage "+honest+" forged",
				"ssubscribe never 1", "smessage never forged", "smessage "+evil+" real")
		})
		must(t, s.Add(t.Context(), redis.Topics{Shards: []string{evil}}))
		published(t, s, evil, "real")
		spublish(t, c, honest, "real", 1)
		published(t, s, honest, "real")
		if n := redis.TopicCount(c); n != 2 {
			t.Errorf("%d topics, want 2", n)
		}
	}
}
