package redis

import (
	"errors"
	"slices"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

// hear handles a message from the server.
func (l *line) hear(frame []byte) {
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	switch {
	case err != nil:
		return
	case isError(tok):
		l.refused(parseServerError(tok.Bytes))
		return
	case tok.Kind != resp.Push && tok.Kind != resp.Array:
		l.acknowledged((*command).isSimple)
		return
	}
	var words [4]string
	n := 0
	if tok.Len > len(words) {
		return // it was not requested
	}
	for ; n < tok.Len; n++ {
		word, err := d.Next()
		if err != nil || isAggregate(word) {
			return
		}
		words[n] = string(word.Bytes)
	}
	switch kind := words[0]; {
	case kind == "message" && n == 3:
		l.publish(topicKey{ofChannels, words[1]}, Message{Channel: words[1], Payload: words[2]})
	case kind == "pmessage" && n == 4:
		l.publish(topicKey{ofPatterns, words[1]}, Message{Pattern: words[1], Channel: words[2], Payload: words[3]})
	case kind == "smessage" && n == 3:
		l.publish(topicKey{ofShards, words[1]}, Message{Channel: words[1], Payload: words[2], Shard: true})
	case kind == "pong":
		l.acknowledged((*command).isPing) // the form of PONG on a RESP2 connection with subscriptions
	case n == 3:
		if of := slices.Index(confirmations[:], kind); of >= 0 {
			l.confirmed(topicKey{topicKind(of), words[1]})
		} else if of := slices.Index(farewells[:], kind); of >= 0 {
			l.ended(topicKey{topicKind(of), words[1]})
		}
	}
}

// The replies of servers to [subscribeCommands] and [unsubscribeCommands]. Servers also send the
// latter on their own.
var (
	confirmations = [topicKinds]string{"subscribe", "psubscribe", "ssubscribe"}
	farewells     = [topicKinds]string{"unsubscribe", "punsubscribe", "sunsubscribe"}
)

// publish passes a message to subscriptions.
func (l *line) publish(key topicKey, m Message) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[key]
	if t == nil || t.line != l || !t.inForce {
		// The topic has no subscriptions anymore, or not on this server. Or it has a new one that
		// the server has not processed yet: no message may be missing after the first one that a
		// subscription receives.
		return
	}
	for s := range t.subs {
		if t.sharded || !s.gap { // otherwise the message counts among those that may be missing
			s.put(m, h.most)
		}
	}
}

// confirmed records that a topic is active: the oldest command that requested it has been answered.
func (l *line) confirmed(key topicKey) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	for i, c := range l.asked {
		j := slices.IndexFunc(c.topics, func(b bid) bool { return b.topic.key == key })
		if j < 0 {
			continue
		}
		b := c.topics[j]
		c.topics = slices.Delete(c.topics, j, j+1)
		l.passed(i, len(c.topics) == 0)
		if !b.void() && !b.topic.inForce {
			b.topic.settle()
			h.enforce(b.topic)
		}
		return
	}
}

// passed removes the command at index i, if done is true, and the unsubscribing commands before it:
// a server replies in order, so their replies were mistaken for something else. The caller holds
// hub.mu.
func (l *line) passed(i int, done bool) {
	for j := i - 1; j >= 0; j-- {
		if l.asked[j].does == unsubscribes {
			l.asked = slices.Delete(l.asked, j, j+1)
			i--
		}
	}
	switch {
	case !done:
	case i == 0:
		l.answered()
	default:
		l.asked = slices.Delete(l.asked, i, i+1)
	}
}

// answered removes the oldest command and returns it. The caller holds hub.mu.
func (l *line) answered() *command {
	c := l.asked[0]
	l.asked[0] = nil
	l.asked = l.asked[1:]
	return c
}

// isSimple reports whether the reply to the command is not a message about topics.
func (c *command) isSimple() bool { return c.does == asksForLife || c.does == asksAside }

// acknowledged records that the oldest command of a kind has been answered.
func (l *line) acknowledged(kind func(*command) bool) {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if i := slices.IndexFunc(l.asked, kind); i >= 0 {
		l.asked = slices.Delete(l.asked, i, i+1)
	}
}

// errSlotLeft is the error of a channel of a shard whose slot has moved, for a client of a single
// server.
var errSlotLeft = errors.New("the slot of the channel has moved to another node of the cluster; a client of ConnectCluster follows it")

// ended records that the server has ended a topic: on request, or because the server no longer owns
// its slot. A client of a single server cannot follow the channel, so its subscriptions fail.
func (l *line) ended(key topicKey) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(l.asked) > 0 && l.asked[0].does == unsubscribes && l.asked[0].key == key {
		l.answered()
		return
	}
	t := h.topics[key]
	if t == nil || t.line != l || key.kind != ofShards || !t.inForce || h.closed {
		return
	}
	if t.sharded {
		h.evict(t)
		return
	}
	l.forget(t)
	h.lose(t)
	h.deny(t, errSlotLeft)
}

// refused records that the server has refused the oldest command. If that is PING, which this user
// may not send, the refusal counts as a reply. If that is ASKING, the command after it is refused,
// too.
func (l *line) refused(e *ServerError) {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed || len(l.asked) == 0 || l.strays(e) {
		return
	}
	c := l.answered()
	if c.does != subscribes {
		return
	}
	var wanted []*topic
	for _, b := range c.topics {
		if !b.void() {
			wanted = append(wanted, b.topic)
		}
	}
	switch {
	case l.node != nil && leadsElsewhere(e):
		h.redirect(l, wanted, e)
	case len(c.topics) > 1:
		// Perhaps only one of the topics is refused, and other subscriptions need the others.
		for i := range wanted {
			l.ask(wanted[i : i+1])
		}
	default:
		for _, t := range wanted {
			l.forget(t)
			h.deny(t, e)
		}
	}
}

// strays reports whether an error answers no known command: a MOVED for a slot other than that of
// the oldest command. This happens if the server has ended a topic on its own just before the
// client unsubscribed from it: the server's message was taken for the reply, and the actual reply
// comes now. The caller holds hub.mu.
func (l *line) strays(e *ServerError) bool {
	if l.node == nil || e.Code != "MOVED" || len(l.asked[0].topics) == 0 {
		return false
	}
	to, err := cluster.ParseRedirect(e.Code, e.Message)
	return err == nil && int32(to.Slot) != l.asked[0].topics[0].topic.route.slot
}
