package redis

import (
	"context"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/driver"
	"github.com/slipstream-go/slipstream/redis/internal/slot"
)

// The hub knows which subscriptions have which topics. A line (pubsub_line.go) is a connection for
// subscriptions, which one goroutine maintains and reads. All topics of a client share one line,
// except for channels of shards in a cluster (pubsub_shards.go).
//
// Commands are chosen under hub.mu and written in that order by another goroutine, so no caller
// waits for a server that does not read. When the line is lost, a subscription receives nothing
// from it until all its topics there are confirmed on the next connection, and then it receives a
// Gap. Topics that were refused together are requested again one by one: a subscription ends only
// if a topic is refused again.
//
// A server answers in order and pushes at any time, so every command with an answer is kept until
// the answer comes (line.asked). A sunsubscribe message that does not answer the oldest command was
// sent by the server on its own.

// defaultSubscription is the default of Options.SubscriptionBytes.
const defaultSubscription = 1 << 20

// A hub knows the topics of a client's subscriptions, and has the connections for them: the main
// line, and in a cluster a line to each node that has channels of shards.
type hub struct {
	// Immutable after newHub.
	client *core
	fail   driver.Errors
	pick   func() *node    // chooses the node of the main line
	most   int             // bytes per subscription
	ctx    context.Context // ends with close
	cancel context.CancelFunc
	wake   chan struct{} // capacity 1: place has something to do

	// Immutable after the client is connected.
	gone   func(*node) bool // reports whether a node has left; if nil, nodes never leave
	shards *router          // for channels of shards in a cluster; if nil, the main line has them

	mu sync.Mutex
	// Guarded by mu.
	topics  map[topicKey]*topic
	subs    map[*Subscription]struct{}
	main    *line               // nil before the first subscription
	lines   map[*node]*line     // for channels of shards
	astray  map[*topic]struct{} // channels of shards that no line has
	placing bool                // the goroutine of place is running
	recheck time.Time           // when to call displaced next; zero if it is not due
	closed  bool

	goroutines sync.WaitGroup // those of lines and that of place; added to under mu

	// Atomics.
	remapped atomic.Bool // the owners of slots may have changed; set by the router
}

// A topic is a channel or pattern with subscriptions.
type topic struct {
	// Immutable.
	key     topicKey
	sharded bool // it is a channel of a shard in a cluster

	// Guarded by hub.mu.
	subs    map[*Subscription]bool // true if a Gap comes before the next message; only for a sharded topic
	line    *line                  // the line that has it; nil if it has no node or no subscriptions
	inForce bool                   // it is confirmed on the current connection of the line
	answer  *answer                // pending, or given while the topic is confirmed
	turn    uint32                 // number of lines that it has left
	placement
}

// An answer is the server's pending reply about a topic.
type answer struct {
	given chan struct{} // closed when the server has answered
	err   error         // written before given is closed
}

func newAnswer() *answer { return &answer{given: make(chan struct{})} }

// give releases the callers that wait for the answer. Only the first call has an effect. The caller
// holds hub.mu.
func (a *answer) give(err error) {
	select {
	case <-a.given:
	default:
		a.err = err
		close(a.given)
	}
}

// await waits until the server has answered.
func (a *answer) await(ctx context.Context) error {
	select {
	case <-a.given:
		return a.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

func newHub(c *core, fail driver.Errors, pick func() *node) *hub {
	h := &hub{client: c, fail: fail, pick: pick, most: defaultSubscription, wake: make(chan struct{}, 1),
		topics: make(map[topicKey]*topic), subs: make(map[*Subscription]struct{}),
		lines: make(map[*node]*line), astray: make(map[*topic]struct{})}
	if c.opts.SubscriptionBytes > 0 {
		h.most = c.opts.SubscriptionBytes
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// add adds topics to s and returns the answers to wait for.
func (h *hub) add(s *Subscription, keys []topicKey) (wait []*answer, err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.closed {
		return nil, ErrClosed
	}
	h.subs[s] = struct{}{}
	var fresh []*topic
	for _, key := range keys {
		if _, known := s.topics[key]; known {
			continue
		}
		t := h.topics[key]
		if t == nil {
			t = h.newTopic(key)
			h.topics[key] = t
			fresh = append(fresh, t)
		}
		s.topics[key] = struct{}{}
		t.subs[s] = false
		if !t.sharded && !t.inForce {
			s.awaiting++
		}
		wait = append(wait, t.answer)
	}
	h.begin(fresh)
	return wait, nil
}

func (h *hub) newTopic(key topicKey) *topic {
	t := &topic{key: key, subs: make(map[*Subscription]bool), answer: newAnswer()}
	if t.sharded = h.shards != nil && key.kind == ofShards; t.sharded {
		t.route.slot = int32(slot.Of(key.name))
	}
	return t
}

// begin assigns new topics to their lines. The caller holds mu.
func (h *hub) begin(fresh []*topic) {
	var main, sharded []*topic
	for _, t := range fresh {
		if t.sharded {
			sharded = append(sharded, t)
		} else {
			main = append(main, t)
		}
	}
	if len(main) > 0 {
		if h.main == nil {
			h.main = h.newLine(nil)
			h.main.start()
		}
		h.main.take(main)
	}
	if len(sharded) > 0 {
		h.toOwners(sharded)
	}
}

// remove removes topics from s.
func (h *hub) remove(s *Subscription, keys []topicKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range keys {
		h.drop(s, key)
	}
}

func (h *hub) removeAll(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key := range s.topics {
		h.drop(s, key)
	}
	delete(h.subs, s)
}

// drop removes s from a topic. If s was the last subscription, the topic is unsubscribed at the
// server. The caller holds mu.
func (h *hub) drop(s *Subscription, key topicKey) {
	if _, known := s.topics[key]; !known {
		return
	}
	delete(s.topics, key)
	t := h.topics[key]
	delete(t.subs, s)
	if !t.sharded && !t.inForce {
		s.awaiting--
		h.mark(s)
	}
	if len(t.subs) > 0 {
		return
	}
	delete(h.topics, key)
	delete(h.astray, t)
	t.answer.give(ErrUnsubscribed)
	if t.line != nil {
		t.line.release(t)
	}
}

// lose records that a topic is no longer confirmed, and that messages may be missing from now on.
// The caller holds mu.
func (h *hub) lose(t *topic) {
	if !t.inForce {
		return
	}
	t.inForce, t.answer = false, newAnswer()
	for s := range t.subs {
		if t.sharded {
			t.subs[s] = true
		} else {
			s.awaiting++
			s.gap = true
		}
	}
}

// enforce records that a topic is confirmed. The caller holds mu.
func (h *hub) enforce(t *topic) {
	t.inForce = true
	t.answer.give(nil)
	for s, gap := range t.subs {
		switch {
		case !t.sharded:
			s.awaiting--
			h.mark(s)
		case gap:
			t.subs[s] = false
			s.put(Message{Kind: Gap, Channel: t.key.name, Shard: true}, h.most)
		}
	}
}

// mark inserts a gap where the main line was lost, once all topics that a subscription has there
// are confirmed again. The caller holds mu.
func (h *hub) mark(s *Subscription) {
	if s.awaiting == 0 && s.gap {
		s.gap = false
		s.put(Message{Kind: Gap}, h.most)
	}
}

// deny ends a topic that the server has refused. The caller holds mu.
func (h *hub) deny(t *topic, err error) {
	t.answer.give(err)
	delete(h.topics, t.key)
	for s, wasInForce := range t.subs {
		delete(s.topics, t.key)
		if !t.sharded {
			s.awaiting--
			wasInForce = s.gap
			s.gap = false
		}
		if wasInForce { // only Receive can report the error
			s.fail(h.fail.With("SUBSCRIBE", slipstream.Refused, err))
		}
	}
	clear(t.subs)
}

// leave closes connections to a node that has left. The main line is opened again to another node.
func (h *hub) leave(n *node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if l := h.main; l != nil && l.conn != nil && l.conn.node == n {
		_ = l.conn.conn.Close()
	}
	if l := h.lines[n]; l != nil && !h.closed {
		h.strand(l)
	}
}

// close ends the hub and all subscriptions.
func (h *hub) close() {
	h.mu.Lock()
	h.closed = true
	if h.main != nil {
		h.main.hangUp()
	}
	for _, l := range h.lines {
		l.hangUp()
	}
	for s := range h.subs {
		s.fail(notLeased(h.fail, "SUBSCRIBE", ErrClosed))
	}
	for _, t := range h.topics {
		t.answer.give(ErrClosed)
	}
	h.mu.Unlock()
	h.cancel()
	h.goroutines.Wait()
}
