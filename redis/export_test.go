package redis

import (
	"slices"
	"time"
)

// StartGrace is startGrace.
const StartGrace = startGrace

// KnownReadOnly reports whether the table permits a command to be repeated.
func KnownReadOnly(name string, args ...any) bool {
	c := Cmd(name, args...)
	return c.repeatable()
}

// KnownToWait reports whether the client gives a command a dedicated connection.
func KnownToWait(name string, args ...any) bool {
	c := Cmd(name, args...)
	return c.waits
}

// KeysOf returns the keys of a command, and reports whether they are channels of a shard.
func KeysOf(name string, args ...string) (keys []string, channels bool) {
	var c Command
	c.name = name
	c.encodeStrings(nil, nil, args)
	cursor := c.info.keysIn(c.frame)
	for from, to, ok := cursor.next(); ok; from, to, ok = cursor.next() {
		keys = append(keys, string(c.frame[from:to]))
	}
	return keys, c.info.flags&flagChannels != 0
}

// KnownForReplicas reports whether the table permits a replica to execute a command.
func KnownForReplicas(name string, args ...string) bool {
	var c Command
	c.name = name
	c.encodeStrings(nil, nil, args)
	return c.info.readsReplica()
}

// ShortenIdle changes how long idle connections of blocking commands are kept.
func ShortenIdle(c *Client, d time.Duration) {
	c.exclusives.mu.Lock()
	defer c.exclusives.mu.Unlock()
	c.exclusives.idleFor = d
}

// TrimsIdle reports whether a timer is set that closes idle connections.
func TrimsIdle(c *Client) bool {
	c.exclusives.mu.Lock()
	defer c.exclusives.mu.Unlock()
	return c.exclusives.trims
}

// TopicCount returns the number of topics that the subscriptions of a client have.
func TopicCount(c *Client) int {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return len(c.hub.topics)
}

// InForce reports whether a server has confirmed the subscription of a client to a channel, on the
// current connection.
func InForce(c *Client, channel string) bool {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	for key, t := range c.hub.topics {
		if key.name == channel && t.inForce {
			return true
		}
	}
	return false
}

// ShardLines returns the sorted addresses of the nodes to which a client has connections for
// channels of shards.
func ShardLines(c *Client) (addrs []string) {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	for n := range c.hub.lines {
		addrs = append(addrs, n.fail.Addr)
	}
	slices.Sort(addrs)
	return addrs
}
