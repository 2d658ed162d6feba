package redistest

import (
	"errors"
	"maps"
	"slices"
)

// subscribe answers SSUBSCRIBE.
func (c *Conn) subscribe(args []string) any {
	if c.multi {
		return errInTransaction
	}
	if c.channels == nil {
		c.channels = make(map[string]struct{})
	}
	var answers []push
	for _, name := range args {
		c.channels[name] = struct{}{}
		answers = append(answers, push{"ssubscribe", name, len(c.channels)})
	}
	return answers
}

// unsubscribe answers SUNSUBSCRIBE.
func (c *Conn) unsubscribe(args []string) any {
	if c.multi {
		return errInTransaction
	}
	if len(args) == 0 {
		if len(c.channels) == 0 {
			return push{"sunsubscribe", nil, 0}
		}
		args = slices.Sorted(maps.Keys(c.channels))
	}
	var answers []push
	for _, name := range args {
		answers = append(answers, c.leave(name))
	}
	return answers
}

// leave ends a subscription and returns the message for the client.
func (c *Conn) leave(name string) push {
	delete(c.channels, name)
	return push{"sunsubscribe", name, len(c.channels)}
}

// errInTransaction is the error for commands that a real Redis would execute.
var errInTransaction = errors.New("redistest does not support subscriptions in transactions")

// publish answers SPUBLISH. All nodes of the shard forward the message.
func (c *Conn) publish(args []string) any {
	received := 0
	for _, s := range c.server.peers() {
		for other := range s.conns {
			if _, subscribed := other.channels[args[0]]; !subscribed {
				continue
			}
			other.send(other.append(nil, push{"smessage", args[0], args[1]}))
			if s == c.server {
				received++
			}
		}
	}
	return received
}

// peers returns the servers of the shard, including the server itself.
func (s *Server) peers() []*Server {
	if s.node == nil {
		return []*Server{s}
	}
	var list []*Server
	for _, n := range s.node.shard.nodes {
		list = append(list, n.server)
	}
	return list
}

// dropChannels ends all clients' subscriptions to channels in some slots of a shard, because the
// slots have another master.
func (s *shard) dropChannels(among func(slot int) bool) {
	for _, n := range s.nodes {
		for c := range n.server.conns {
			for _, name := range slices.Sorted(maps.Keys(c.channels)) {
				if among(Slot(name)) {
					c.send(c.append(nil, c.leave(name)))
				}
			}
		}
	}
}
