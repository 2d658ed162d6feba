package redis

import "time"

// KnownReadOnly reports whether the table lets a command be repeated.
func KnownReadOnly(name string, args ...any) bool {
	c := Cmd(name, args...)
	return c.repeatable()
}

// KnownToWait reports whether the client gives a command a connection of its own.
func KnownToWait(name string, args ...any) bool {
	c := Cmd(name, args...)
	return c.waits
}

// ShortenIdle changes how long connections of commands that wait are kept idle.
func ShortenIdle(c *Client, d time.Duration) {
	c.exclusives.mu.Lock()
	defer c.exclusives.mu.Unlock()
	c.exclusives.idleFor = d
}

// TrimsIdle reports whether a timer is set that closes idle ones.
func TrimsIdle(c *Client) bool {
	c.exclusives.mu.Lock()
	defer c.exclusives.mu.Unlock()
	return c.exclusives.trims
}

// TopicCount returns how many topics the subscriptions of a client listen to.
func TopicCount(c *Client) int {
	c.hub.mu.Lock()
	defer c.hub.mu.Unlock()
	return len(c.hub.topics)
}
