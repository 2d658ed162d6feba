package redis

import (
	"context"
	"errors"
	"fmt"
	"github.com/slipstream-go/slipstream/internal/driver"
	"os"
	"slices"
	"sync"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

const (
	// defaultSubscription is Options.SubscriptionBytes.
	defaultSubscription = 1 << 20
	// hubPing is how long the connection of subscriptions may be silent before the server is
	// asked for a sign of life.
	hubPing = 15 * time.Second
	// topicsAtOnce is how many topics one command subscribes to.
	topicsAtOnce = 1000
)

// hub is the connection of all subscriptions of a client, and who listens to what. One
// goroutine reads it, from the first subscription to Close.
type hub struct {
	// Immutable after newHub.
	client    *core
	fail      driver.Errors
	pick      func() *node     // of the connection
	clustered bool             // the connection leads to any node of a cluster
	gone      func(*node) bool // a node has left; if nil, none does
	most      int              // bytes a subscription
	ctx       context.Context  // ends with close
	cancel    context.CancelFunc
	ended     chan struct{} // closed when run has ended

	mu sync.Mutex
	// Guarded by mu.
	topics  map[topicKey]*topic
	subs    map[*Subscription]struct{}
	started bool
	closed  bool
	conn    *exclusive   // in force; nil: being opened
	out     []byte       // commands in the order in which they were decided, not yet written
	asked   []*subscribe // commands whose answers are to come
	writing bool         // a goroutine writes out

	writers sync.WaitGroup // that goroutine; added to under mu
}

// topic is what somebody listens to.
type topic struct {
	key topicKey

	// Guarded by hub.mu.
	subs    map[*Subscription]struct{}
	inForce bool // of the present connection

	ready chan struct{} // closed when the server has first answered
	err   error         // written before
}

// subscribe is a command that was sent.
type subscribe struct {
	topics []*topic // not yet confirmed
	ping   bool     // it is PING
}

func (s *subscribe) isPing() bool { return s.ping }

func newHub(c *core, fail driver.Errors, pick func() *node) *hub {
	h := &hub{client: c, fail: fail, pick: pick, most: defaultSubscription, ended: make(chan struct{}),
		topics: make(map[topicKey]*topic), subs: make(map[*Subscription]struct{})}
	if c.opts.SubscriptionBytes > 0 {
		h.most = c.opts.SubscriptionBytes
	}
	h.ctx, h.cancel = context.WithCancel(context.Background())
	return h
}

// await waits until the server has answered.
func (t *topic) await(ctx context.Context) error {
	select {
	case <-t.ready:
		return t.err
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// add makes s listen to topics and returns those to wait for.
func (h *hub) add(s *Subscription, keys []topicKey) (wait []*topic, err error) {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return nil, ErrClosed
	}
	if !h.started {
		h.started = true
		// Stopped and waited for by close.
		go h.run()
	}
	h.subs[s] = struct{}{}
	var fresh []*topic
	for _, key := range keys {
		if _, known := s.topics[key]; known {
			continue
		}
		t := h.topics[key]
		if t == nil {
			t = &topic{key: key, subs: make(map[*Subscription]struct{}), ready: make(chan struct{})}
			h.topics[key] = t
			fresh = append(fresh, t)
		}
		s.topics[key] = struct{}{}
		t.subs[s] = struct{}{}
		if !t.inForce {
			s.awaiting++
		}
		wait = append(wait, t)
	}
	if h.conn != nil {
		h.ask(fresh)
		h.write()
	} // else whoever opens the connection asks for all
	h.mu.Unlock()
	return wait, nil
}

// ask appends the commands that subscribe to topics. Under mu.
func (h *hub) ask(topics []*topic) {
	var of [topicKinds][]*topic
	for _, t := range topics {
		of[t.key.kind] = append(of[t.key.kind], t)
	}
	for kind, list := range of {
		for len(list) > 0 {
			part := list[:min(len(list), topicsAtOnce)]
			list = list[len(part):]
			h.out = resp.AppendArrayHeader(h.out, 1+len(part))
			h.out = resp.AppendBulkString(h.out, subscribeCommands[kind])
			for _, t := range part {
				h.out = resp.AppendBulkString(h.out, t.key.name)
			}
			h.asked = append(h.asked, &subscribe{topics: append([]*topic(nil), part...)})
		}
	}
}

// remove makes s listen to less.
func (h *hub) remove(s *Subscription, keys []topicKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for _, key := range keys {
		h.drop(s, key)
	}
	h.write()
}

func (h *hub) removeAll(s *Subscription) {
	h.mu.Lock()
	defer h.mu.Unlock()
	for key := range s.topics {
		h.drop(s, key)
	}
	delete(h.subs, s)
	h.write()
}

// drop takes s from a topic; the last one tells the server. Under mu.
func (h *hub) drop(s *Subscription, key topicKey) {
	if _, known := s.topics[key]; !known {
		return
	}
	delete(s.topics, key)
	t := h.topics[key]
	delete(t.subs, s)
	if !t.inForce {
		s.awaiting--
		h.mark(s)
	}
	if len(t.subs) > 0 {
		return
	}
	delete(h.topics, key)
	if h.conn != nil {
		h.out = resp.AppendCommand(h.out, unsubscribeCommands[key.kind], key.name)
	}
}

// write lets what was decided be written. Nobody waits for it: a server that has stopped reading
// must keep neither a caller beyond its context nor the reader. Under mu.
func (h *hub) write() {
	if h.writing || h.closed || h.conn == nil || len(h.out) == 0 {
		return
	}
	h.writing = true
	// Ends when nothing is left to be written, at the latest when the connection is closed;
	// close waits for it.
	h.writers.Go(h.flush)
}

// flush writes what was decided. A failure shows where the connection is read.
func (h *hub) flush() {
	for {
		h.mu.Lock()
		conn, out := h.conn, h.out
		h.out = nil
		h.writing = conn != nil && len(out) > 0
		h.mu.Unlock()
		if conn == nil || len(out) == 0 {
			return
		}
		if stall := h.client.opts.stallTimeout(); stall > 0 {
			_ = conn.conn.SetWriteDeadline(time.Now().Add(stall))
		}
		if _, err := conn.conn.Write(out); err != nil {
			_ = conn.conn.Close()
		}
	}
}

// run keeps the connection until the hub is closed.
func (h *hub) run() {
	defer close(h.ended)
	for attempt := 1; h.ctx.Err() == nil; attempt++ {
		n := h.pick()
		conn, err := openExclusive(h.ctx, n)
		if err == nil {
			attempt = 0
			err = h.serve(conn)
			conn.close()
			h.lost()
		}
		if h.ctx.Err() != nil {
			return
		}
		h.client.hooks.Event(Event{Kind: Disconnected, Addr: n.fail.Addr, At: time.Now(), Err: fmt.Errorf("subscriptions: %w", err)})
		t := time.NewTimer(h.client.retry.Backoff.After(max(attempt, 1)))
		select {
		case <-t.C:
		case <-h.ctx.Done():
		}
		t.Stop()
	}
}

// serve subscribes to everything that somebody wants and reads until the connection fails.
func (h *hub) serve(conn *exclusive) error {
	h.mu.Lock()
	if h.closed {
		h.mu.Unlock()
		return ErrClosed
	}
	if h.gone != nil && h.gone(conn.node) { // while the connection was opened
		h.mu.Unlock()
		return errNodeLeft
	}
	h.conn = conn
	all := make([]*topic, 0, len(h.topics))
	for _, t := range h.topics {
		all = append(all, t)
	}
	h.ask(all)
	h.write()
	h.mu.Unlock()
	for {
		frame, err := h.next(conn)
		if err != nil {
			return err
		}
		h.hear(frame)
	}
}

// next reads a message. A silent server is asked for a sign of life.
func (h *hub) next(conn *exclusive) ([]byte, error) {
	pinged := false
	for {
		limit := hubPing
		if stall := h.client.opts.stallTimeout(); pinged && stall > 0 {
			limit = stall
		}
		if err := conn.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
			return nil, err
		}
		frame, err := conn.message()
		switch {
		case err == nil:
			return frame, nil
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return nil, err
		case pinged && h.client.opts.stallTimeout() > 0:
			return nil, ErrStalled
		case pinged:
			continue // it has for ever
		}
		pinged = true
		h.ping()
	}
}

// ping asks for a sign of life, unless the last PING is still to be answered.
func (h *hub) ping() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if !slices.ContainsFunc(h.asked, (*subscribe).isPing) {
		h.out = append(h.out, "*1\r\n$4\r\nPING\r\n"...)
		h.asked = append(h.asked, &subscribe{ping: true})
		h.write()
	}
}

var errNodeLeft = errors.New("the node has left, or is the master no more")

// leave closes the connection if it leads to a node that has left: run opens another one.
func (h *hub) leave(n *node) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if h.conn != nil && h.conn.node == n {
		_ = h.conn.conn.Close()
	}
}

// lost notes that nothing is in force any more.
func (h *hub) lost() {
	h.mu.Lock()
	defer h.mu.Unlock()
	h.conn, h.out, h.asked = nil, nil, nil
	for _, t := range h.topics {
		if !t.inForce {
			continue
		}
		t.inForce = false
		for s := range t.subs {
			s.awaiting++
			s.gap = true
		}
	}
}

// hear deals with a message of the server.
func (h *hub) hear(frame []byte) {
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	switch {
	case err != nil:
		return
	case isError(tok):
		h.refused(parseServerError(tok.Bytes))
		return
	case tok.Kind != resp.Push && tok.Kind != resp.Array:
		h.ponged()
		return
	}
	var words [4]string
	n := 0
	if tok.Len > len(words) {
		return // nothing that was asked for
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
		h.publish(topicKey{ofChannels, words[1]}, Message{Channel: words[1], Payload: words[2]})
	case kind == "pmessage" && n == 4:
		h.publish(topicKey{ofPatterns, words[1]}, Message{Pattern: words[1], Channel: words[2], Payload: words[3]})
	case kind == "smessage" && n == 3:
		h.publish(topicKey{ofShards, words[1]}, Message{Channel: words[1], Payload: words[2], Shard: true})
	case kind == "subscribe" && n == 3:
		h.confirmed(topicKey{ofChannels, words[1]})
	case kind == "psubscribe" && n == 3:
		h.confirmed(topicKey{ofPatterns, words[1]})
	case kind == "ssubscribe" && n == 3:
		h.confirmed(topicKey{ofShards, words[1]})
	case kind == "pong":
		h.ponged() // as a connection of RESP2 with subscriptions has it
	}
}

func (h *hub) publish(key topicKey, m Message) {
	h.mu.Lock()
	defer h.mu.Unlock()
	t := h.topics[key]
	if t == nil || !t.inForce {
		// Nobody wants it any more, or somebody does again: the server has not come to that yet,
		// and nothing may be missing behind what a subscription has received first.
		return
	}
	for s := range t.subs {
		if !s.gap { // else it belongs to what may be missing
			s.put(m, h.most)
		}
	}
}

// mark puts a gap where the connection was lost, once all of a subscription is in force
// again. Under mu.
func (h *hub) mark(s *Subscription) {
	if s.awaiting == 0 && s.gap {
		s.gap = false
		s.put(Message{Kind: Gap}, h.most)
	}
}

// confirmed notes that a topic is in force: the oldest command that asked for it is answered.
func (h *hub) confirmed(key topicKey) {
	h.mu.Lock()
	defer h.mu.Unlock()
	var t *topic
	for i, command := range h.asked {
		for j, asked := range command.topics {
			if asked.key == key {
				t = asked
				command.topics = append(command.topics[:j], command.topics[j+1:]...)
				break
			}
		}
		if t != nil {
			if len(command.topics) == 0 {
				h.asked = append(h.asked[:i], h.asked[i+1:]...)
			}
			break
		}
	}
	if t == nil || t.inForce {
		return
	}
	t.inForce = true
	t.answered(nil)
	for s := range t.subs {
		s.awaiting--
		h.mark(s)
	}
}

// ponged notes that the oldest PING is answered.
func (h *hub) ponged() {
	h.mu.Lock()
	defer h.mu.Unlock()
	if i := slices.IndexFunc(h.asked, (*subscribe).isPing); i >= 0 {
		h.asked = slices.Delete(h.asked, i, i+1)
	}
}

// answered lets go of those who wait for the topic.
func (t *topic) answered(err error) {
	select {
	case <-t.ready:
	default:
		t.err = err
		close(t.ready)
	}
}

// refused notes that the server has refused the oldest command. If that is PING, which this
// user may not send, it is a sign of life as good as any.
func (h *hub) refused(err error) {
	h.mu.Lock()
	defer h.mu.Unlock()
	if len(h.asked) == 0 {
		return
	}
	command := h.asked[0]
	h.asked = h.asked[1:]
	if len(command.topics) > 1 {
		// It may be one of them alone, and not the same one's that others want.
		for i, t := range command.topics {
			if h.topics[t.key] == t {
				h.ask(command.topics[i : i+1])
			} else {
				t.answered(err) // nobody wants it any more
			}
		}
		h.write()
		return
	}
	for _, t := range command.topics {
		t.answered(err)
		if h.topics[t.key] == t {
			delete(h.topics, t.key)
		}
		for s := range t.subs {
			delete(s.topics, t.key)
			s.awaiting--
			if s.gap { // it was in force once: nobody waits for it but Receive
				s.gap = false
				s.fail(h.fail.With("SUBSCRIBE", slipstream.Refused, err))
			}
		}
		clear(t.subs)
	}
}

// close ends the hub and all subscriptions.
func (h *hub) close() {
	h.mu.Lock()
	started := h.started
	h.closed = true
	if h.conn != nil {
		_ = h.conn.conn.Close()
	}
	for s := range h.subs {
		s.fail(notLeased(h.fail, "SUBSCRIBE", ErrClosed))
	}
	for _, t := range h.topics {
		t.answered(ErrClosed)
	}
	h.mu.Unlock()
	h.cancel()
	if started {
		<-h.ended
	}
	h.writers.Wait()
}
