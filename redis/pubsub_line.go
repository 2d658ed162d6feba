package redis

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

const (
	// linePing is how long a line may be silent before it sends PING.
	linePing = 15 * time.Second
	// topicsAtOnce is the maximum number of topics in one subscribing command.
	topicsAtOnce = 1000
	// mostOwed bounds the answers that a server owes in addition to one for each topic. Otherwise a
	// server that never confirms the end of a topic would fill the memory of a program that often
	// subscribes and unsubscribes.
	mostOwed = 1 << 18
)

// A line is a connection for subscriptions, which is reopened when it is lost. One goroutine
// maintains and reads it. The main line ends with the hub. Any other line also ends when it has no
// topics and is lost or silent, or when its node has left.
type line struct {
	// Immutable.
	hub    *hub
	node   *node           // the node at the other end; nil for the main line, whose node hub.pick chooses
	ctx    context.Context // ends with the line
	cancel context.CancelFunc

	// Guarded by hub.mu.
	topics  map[*topic]struct{}
	conn    *exclusive // the open connection; nil while it is being opened
	out     []byte     // commands that are not yet written, in the order in which they were chosen
	asked   []*command // commands that await an answer, in the same order
	writing bool       // a goroutine writes out
}

// A command is a command that was sent on a line and awaits its answer.
type command struct {
	does   purpose
	topics []bid    // topics to which it subscribes, without those that are confirmed
	key    topicKey // topic from which it unsubscribes
}

// A bid is a topic that was requested from a server. It is void once the topic has left the line,
// even if the topic has come back.
type bid struct {
	topic *topic
	turn  uint32 // topic.turn at that time
}

func (b bid) void() bool { return b.turn != b.topic.turn }

type purpose uint8

const (
	subscribes purpose = iota
	unsubscribes
	asksForLife // PING
	asksAside   // ASKING
)

// newLine returns a line to a node, or the main line if n is nil. The caller holds hub.mu.
func (h *hub) newLine(n *node) *line {
	l := &line{hub: h, node: n, topics: make(map[*topic]struct{})}
	l.ctx, l.cancel = context.WithCancel(h.ctx)
	return l
}

// start starts the goroutine of the line. The caller holds hub.mu.
func (l *line) start() {
	// Stopped by end or by close of the hub, which waits for it.
	l.hub.goroutines.Go(l.run)
}

// take adds topics to the line and requests them from the server. The caller holds
// hub.mu.
func (l *line) take(topics []*topic) {
	for _, t := range topics {
		t.line = l
		l.topics[t] = struct{}{}
	}
	l.ask(topics)
}

// ask sends the commands that subscribe to topics of the line, and reorders topics. Without a
// connection it does nothing, because open requests all topics. The caller holds hub.mu.
func (l *line) ask(topics []*topic) {
	if l.conn == nil {
		return
	}
	slices.SortStableFunc(topics, (*topic).compare)
	for len(topics) > 0 {
		first, n := topics[0], 1
		for n < min(len(topics), topicsAtOnce) && topics[n].compare(first) == 0 {
			n++
		}
		if first.route.asking {
			l.out = append(l.out, askingFrame...)
			l.asked = append(l.asked, &command{does: asksAside})
		}
		l.out = resp.AppendArrayHeader(l.out, 1+n)
		l.out = resp.AppendBulkString(l.out, subscribeCommands[first.key.kind])
		c := &command{topics: make([]bid, n)}
		for i, t := range topics[:n] {
			l.out = resp.AppendBulkString(l.out, t.key.name)
			c.topics[i] = bid{t, t.turn}
		}
		l.asked = append(l.asked, c)
		topics = topics[n:]
	}
	l.write()
}

// compare orders topics such that topics that fit into one command are adjacent and compare as
// equal.
func (t *topic) compare(other *topic) int {
	asking := 0
	if t.route.asking != other.route.asking {
		asking = 1
		if other.route.asking {
			asking = -1
		}
	}
	return cmp.Or(cmp.Compare(t.key.kind, other.key.kind), cmp.Compare(t.route.slot, other.route.slot), asking)
}

// release removes a topic from the line and unsubscribes from it at the server. The caller holds
// hub.mu.
func (l *line) release(t *topic) {
	l.forget(t)
	if l.conn != nil {
		l.out = resp.AppendCommand(l.out, unsubscribeCommands[t.key.kind], t.key.name)
		l.asked = append(l.asked, &command{does: unsubscribes, key: t.key})
		l.write()
	} else if l.node != nil && len(l.topics) == 0 {
		l.end()
	}
}

// forget removes a topic from the line, which then ignores further replies about it. The caller
// holds hub.mu.
func (l *line) forget(t *topic) {
	delete(l.topics, t)
	t.line = nil
	t.turn++
}

// end ends a line to a node. The caller holds hub.mu.
func (l *line) end() {
	delete(l.hub.lines, l.node)
	l.cancel()
	l.hangUp()
}

// hangUp closes the connection. The caller holds hub.mu.
func (l *line) hangUp() {
	if l.conn != nil {
		_ = l.conn.conn.Close()
	}
}

// over reports whether the line has ended. A line to a node ends here if it has no topics.
func (l *line) over() bool {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if l.node != nil && len(l.topics) == 0 && l.ctx.Err() == nil {
		l.end()
	}
	return l.ctx.Err() != nil
}

// write starts writing the queued commands. It does not wait: a server that has stopped reading
// must neither block a caller beyond its context nor block the reader. The caller holds hub.mu.
func (l *line) write() {
	if len(l.asked) > len(l.topics)+mostOwed {
		l.hangUp()
	}
	if l.writing || l.hub.closed || l.conn == nil || len(l.out) == 0 {
		return
	}
	l.writing = true
	// Ends when nothing is left to write, or at the latest when the connection is closed; close of
	// the hub waits for it.
	l.hub.goroutines.Go(l.flush)
}

// flush writes the queued commands. If it fails, the reader of the connection finds the error.
func (l *line) flush() {
	h := l.hub
	for {
		h.mu.Lock()
		conn, out := l.conn, l.out
		l.out = nil
		l.writing = conn != nil && len(out) > 0
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

// run maintains the connection until the line has ended.
func (l *line) run() {
	defer l.cancel()
	h := l.hub
	for attempt := 1; !l.over(); attempt++ {
		n := l.node
		if n == nil {
			n = h.pick()
		}
		conn, err := openExclusive(l.ctx, n)
		if err == nil {
			attempt = 0
			err = l.serve(conn)
			conn.close()
			l.lost()
		}
		if l.over() {
			return
		}
		h.client.hooks.Event(Event{Kind: Disconnected, Addr: n.fail.Addr, At: time.Now(), Err: fmt.Errorf("subscriptions: %w", err)})
		if l.node != nil {
			h.shards.lost()
		}
		t := time.NewTimer(h.client.retry.Backoff.After(max(attempt, 1)))
		select {
		case <-t.C:
		case <-l.ctx.Done():
		}
		t.Stop()
	}
}

var errNodeLeft = errors.New("the node has left, or is no longer the master")

// serve subscribes to all topics of the line and reads until the connection fails.
func (l *line) serve(conn *exclusive) error {
	if err := l.open(conn); err != nil {
		return err
	}
	for {
		frame, err := l.next(conn)
		if err != nil {
			return err
		}
		l.hear(frame)
	}
}

// open activates a connection and requests all topics.
func (l *line) open(conn *exclusive) error {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	switch {
	case h.closed || l.ctx.Err() != nil:
		return ErrClosed
	case l.node == nil && h.gone != nil && h.gone(conn.node): // while the connection was opened
		return errNodeLeft
	}
	l.conn = conn
	all := make([]*topic, 0, len(l.topics))
	for t := range l.topics {
		all = append(all, t)
	}
	l.ask(all)
	return nil
}

// lost records that no topic of the line is confirmed anymore.
func (l *line) lost() {
	h := l.hub
	h.mu.Lock()
	defer h.mu.Unlock()
	l.conn, l.out, l.asked = nil, nil, nil
	for t := range l.topics {
		h.lose(t)
	}
}

// next reads a message. If the server is silent, it sends PING.
func (l *line) next(conn *exclusive) ([]byte, error) {
	stall := l.hub.client.opts.stallTimeout()
	pinged := false
	for {
		limit := linePing
		if pinged && stall > 0 {
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
		case pinged && stall > 0:
			return nil, ErrStalled
		case pinged:
			continue // a message may take any time
		case l.over():
			return nil, ErrClosed
		}
		pinged = true
		l.ping()
	}
}

// ping sends PING, unless the last one is still unanswered.
func (l *line) ping() {
	l.hub.mu.Lock()
	defer l.hub.mu.Unlock()
	if !slices.ContainsFunc(l.asked, (*command).isPing) {
		l.out = append(l.out, "*1\r\n$4\r\nPING\r\n"...)
		l.asked = append(l.asked, &command{does: asksForLife})
		l.write()
	}
}

func (c *command) isPing() bool { return c.does == asksForLife }
