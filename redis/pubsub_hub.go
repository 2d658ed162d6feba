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

// The hub knows which subscriptions have which topics. A line (pubsub_line.go) is a connection of
// subscriptions, which one goroutine keeps and reads. All topics of a client share one line, except for
// channels of shards in a cluster (pubsub_shards.go).
//
// Commands are chosen under hub.mu and written in that order by another goroutine, so no caller waits
// for a server that does not read. When the line is lost, a subscription receives nothing from it until
// all its topics there are confirmed on the next connection, and then a Gap. Topics that were refused
// together are requested again one by one: only one that is refused again ends a subscription.
//
// A server answers in order and pushes at any time, so every command that has an answer is kept until
// the answer comes (line.asked). A sunsubscribe that does not answer the oldest command is the server's
// own decision.

// defaultSubscription is Options.SubscriptionBytes.
const defaultSubscription = 1 << 20

// A hub knows what the subscriptions of a client listen to, and has the connections that bring it:
// the main line, and in a cluster a line to each node that has channels of shards.
type hub struct {
	// Immutable after newHub.
	client *core
	fail   driver.Errors
	pick   func() *node    // of the main line
	most   int             // bytes a subscription
	ctx    context.Context // ends with close
	cancel context.CancelFunc
	wake   chan struct{} // capacity 1: place has something to do

	// Immutable after the client is connected.
	gone   func(*node) bool // a node has left; if nil, none does
	shards *router          // of the channels of shards in a cluster; if nil, the main line has them

	mu sync.Mutex
	// Guarded by mu.
	topics  map[topicKey]*topic
	subs    map[*Subscription]struct{}
	main    *line               // nil before the first subscription
	lines   map[*node]*line     // of channels of shards
	astray  map[*topic]struct{} // channels of shards that no line has
	placing bool                // the goroutine of place runs
	recheck time.Time           // when displaced is to look again; zero: it is not
	closed  bool

	goroutines sync.WaitGroup // of lines, and that of place; added to under mu

	// Atomics.
	remapped atomic.Bool // slots may have other owners than before; set by the router
}

// A topic is a channel or pattern with subscriptions.
type topic struct {
	// Immutable.
	key     topicKey
	sharded bool // it is a channel of a shard in a cluster

	// Guarded by hub.mu.
	subs    map[*Subscription]bool // true: a Gap comes before the next message; only of a sharded topic
	line    *line                  // that has it; nil if it has no node or no subscriptions
	inForce bool                   // the present connection of the line brings it
	answer  *answer                // to come, or given while the topic is in force
	turn    uint32                 // counts the lines that it has left
	placement
}

// An answer is what the server will say about a topic.
type answer struct {
	given chan struct{} // closed when the server has answered
	err   error         // written before
}

func newAnswer() *answer { return &answer{given: make(chan struct{})} }

// give releases the callers that wait for the answer. Only the first answer counts. The
// caller holds hub.mu.
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

// add makes s listen to topics and returns the answers to wait for.
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

// begin puts fresh topics on their lines. Under mu.
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

// remove makes s listen to less.
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

// drop removes s from a topic; the last one is followed by an unsubscription at
// the server. The caller holds mu.
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

// lose records that a topic is no longer in force, and that messages may be missing from now on. The
// caller holds mu.
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

// enforce notes that a topic is in force. Under mu.
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

// mark puts a gap where the main line was lost, once all that a subscription has there is in force
// again. Under mu.
func (h *hub) mark(s *Subscription) {
	if s.awaiting == 0 && s.gap {
		s.gap = false
		s.put(Message{Kind: Gap}, h.most)
	}
}

// deny ends a topic, which the server has refused. Under mu.
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
		if wasInForce { // only Receive waits for it
			s.fail(h.fail.With("SUBSCRIBE", slipstream.Refused, err))
		}
	}
	clear(t.subs)
}

// leave ends connections to a node that has left. The main line opens one to another node.
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
