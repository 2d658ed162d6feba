package redis

import (
	"context"
	"errors"
	"iter"
	"sync"

	"github.com/slipstream-go/slipstream"
)

// Topics are the channels and patterns of a subscription.
type Topics struct {
	// Channels are names of channels, and Patterns are patterns like those of KEYS. Shards are
	// names of channels of [Client.SPublish], which in a cluster have slots like keys.
	Channels, Patterns, Shards []string
}

// A MessageKind says what a [Message] is.
type MessageKind uint8

const (
	// Published means that a message was published.
	Published MessageKind = iota
	// Gap means that messages may be missing here. The subscription is active again: messages
	// published from now on are received. If Channel is set, the Gap concerns only that channel.
	Gap
)

// A Message is what a subscription receives.
type Message struct {
	Kind MessageKind
	// Channel is the channel to which Payload was published, and Pattern is the matching pattern if
	// the subscription is by pattern. Shard says that the message was published by
	// [Client.SPublish]. A Gap has a Channel, with Shard set, if only messages of that channel may
	// be missing, as after the migration of its slot.
	Channel, Pattern, Payload string
	Shard                     bool
	// Lost is, for a Gap, the number of messages that were dropped because the subscription did not
	// receive them in time. If it is 0, the connection was lost or the slot of the channel has
	// moved, and the number is unknown.
	Lost int
}

// messageCost is what a message counts in addition to its strings.
const messageCost = 96

// A Subscription receives messages. It must be closed. All subscriptions of a client share one
// connection, and in a cluster one more to each node that has channels of shards. A lost connection
// is reopened, and a [Gap] marks the place where messages may be missing.
type Subscription struct {
	// Immutable.
	hub  *hub
	wake chan struct{} // capacity 1: something has arrived

	// Guarded by hub.mu.
	topics   map[topicKey]struct{}
	awaiting int  // topics of the main line that are not confirmed
	gap      bool // the main line was lost since they were confirmed

	mu sync.Mutex
	// Guarded by mu.
	queue  []Message
	bytes  int // of queue
	failed error
	closed bool
}

// Subscribe returns once the server has confirmed that it will send the messages that are
// published.
//
// A subscription that does not receive keeps at most Options.SubscriptionBytes of messages; further
// ones are dropped, and counted by a [Gap].
func (c *Client) Subscribe(ctx context.Context, t Topics) (*Subscription, error) {
	s := &Subscription{hub: c.hub, wake: make(chan struct{}, 1), topics: make(map[topicKey]struct{})}
	if err := s.Add(ctx, t); err != nil {
		s.Close()
		return nil, err
	}
	return s, nil
}

// Add adds topics to the subscription. If it fails, some of them may be active.
func (s *Subscription) Add(ctx context.Context, t Topics) error {
	wait, err := s.hub.add(s, t.keys())
	for i := 0; err == nil && i < len(wait); i++ {
		err = wait[i].await(ctx)
	}
	if err != nil {
		return s.hub.fail.With("SUBSCRIBE", outcomeOfSubscribe(err), err)
	}
	return nil
}

// outcomeOfSubscribe returns the outcome of an error of Add: subscribing changes nothing at the
// server that could be done twice.
func outcomeOfSubscribe(err error) slipstream.Outcome {
	var e *ServerError
	switch {
	case errors.Is(err, ErrClosed):
		return slipstream.Closed
	case errors.As(err, &e):
		return slipstream.Refused
	}
	return slipstream.NotSent
}

// Remove removes topics from the subscription. Messages that arrived earlier can still be received.
func (s *Subscription) Remove(t Topics) { s.hub.remove(s, t.keys()) }

// Close ends the subscription. It may be called more than once, and while another goroutine
// receives.
func (s *Subscription) Close() {
	s.hub.removeAll(s)
	s.mu.Lock()
	s.closed, s.queue, s.bytes = true, nil, 0
	s.mu.Unlock()
	s.notify()
}

// ErrUnsubscribed is returned by the methods of a closed [Subscription].
var ErrUnsubscribed = errors.New("redis: the subscription is closed")

// Receive returns the next message. It waits for one until ctx ends. An error other than that of
// ctx is final: the subscription or the client was closed, or the server no longer permits this
// user to subscribe.
func (s *Subscription) Receive(ctx context.Context) (Message, error) {
	for {
		m, ok, err := s.take()
		if ok || err != nil {
			return m, err
		}
		select {
		case <-s.wake:
		case <-ctx.Done():
			return Message{}, context.Cause(ctx)
		}
	}
}

// Messages returns messages as they arrive, until the subscription is closed. An error, if any, is
// returned last, and is one of those of [Subscription.Receive].
func (s *Subscription) Messages(ctx context.Context) iter.Seq2[Message, error] {
	return func(yield func(Message, error) bool) {
		for {
			m, err := s.Receive(ctx)
			if errors.Is(err, ErrUnsubscribed) || !yield(m, err) || err != nil {
				return
			}
		}
	}
}

// take returns the next message if there is one.
func (s *Subscription) take() (m Message, ok bool, err error) {
	s.mu.Lock()
	defer s.mu.Unlock()
	switch {
	case s.closed:
		return m, false, ErrUnsubscribed
	case len(s.queue) == 0:
		return m, false, s.failed
	}
	m = s.queue[0]
	s.queue[0] = Message{}
	s.queue = s.queue[1:]
	s.bytes -= m.cost()
	if len(s.queue) > 0 {
		s.notify() // several goroutines may receive
	}
	return m, true, nil
}

func (m *Message) cost() int { return messageCost + len(m.Channel) + len(m.Pattern) + len(m.Payload) }

func (s *Subscription) notify() {
	select {
	case s.wake <- struct{}{}:
	default:
	}
}

// put queues a message, or counts it as lost.
func (s *Subscription) put(m Message, most int) {
	s.mu.Lock()
	defer s.mu.Unlock()
	if s.closed {
		return
	}
	cost := m.cost()
	full := s.bytes+cost > most && len(s.queue) > 0
	if full && m.Kind == Published {
		m, cost = Message{Kind: Gap, Lost: 1}, messageCost
	} else if full {
		m, cost = Message{Kind: Gap}, messageCost
	}
	if n := len(s.queue); n > 0 && m.Kind == Gap && s.queue[n-1].Kind == Gap && (full || s.queue[n-1].Channel == m.Channel) {
		// One of the two gaps has the number of missing messages, or the number is unknown.
		last := &s.queue[n-1]
		if last.Lost > 0 && m.Lost > 0 {
			last.Lost++
		} else {
			last.Lost = 0
		}
		if last.Channel != m.Channel {
			s.bytes -= len(last.Channel)
			last.Channel, last.Shard = "", false
		}
		return
	}
	s.queue = append(s.queue, m)
	s.bytes += cost
	s.notify()
}

// fail makes Receive return err after the queued messages.
func (s *Subscription) fail(err error) {
	s.mu.Lock()
	if s.failed == nil {
		s.failed = err
	}
	s.mu.Unlock()
	s.notify()
}

// topicKey is a topic of one of three kinds.
type topicKey struct {
	kind topicKind
	name string
}

type topicKind uint8

const (
	ofChannels topicKind = iota
	ofPatterns
	ofShards
	topicKinds
)

// The commands and messages for each kind.
var (
	subscribeCommands   = [topicKinds]string{"SUBSCRIBE", "PSUBSCRIBE", "SSUBSCRIBE"}
	unsubscribeCommands = [topicKinds]string{"UNSUBSCRIBE", "PUNSUBSCRIBE", "SUNSUBSCRIBE"}
)

func (t Topics) keys() []topicKey {
	var list []topicKey
	for kind, names := range [topicKinds][]string{t.Channels, t.Patterns, t.Shards} {
		for _, name := range names {
			list = append(list, topicKey{topicKind(kind), name})
		}
	}
	return list
}
