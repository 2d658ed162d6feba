package cluster

import (
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
	"strings"
	"time"
)

// answer is the result of querying one node.
type answer struct {
	topology *Topology
	err      error
	noShards bool // the node did not answer CLUSTER SHARDS with a topology
}

// collect asks nodes until the ballot has enough answers. If no node has answered, it returns the error
// of the last one.
func (r *Refresher) collect(ctx context.Context, b *ballot) error {
	left := r.candidates(b.inForce)
	if len(left) == 0 {
		return ErrNoNodes
	}
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	answers := make(chan answer, len(left))
	forms, running := r.forms(), 0
	next := func() {
		addr := left[0]
		left = left[1:]
		running++
		r.asked.Add(1)
		// Ended by cancel and by Config.Timeout; Close waits for it.
		r.asks.Go(func() { answers <- r.ask(ctx, addr, forms) })
	}
	next()
	patience := time.NewTicker(r.config.Patience)
	defer patience.Stop()
	var failure error
	for running > 0 {
		select {
		case a := <-answers:
			running--
			r.learn(&a)
			if a.err != nil {
				failure = a.err
			} else if b.add(a.topology) {
				return nil
			}
			if running == 0 && len(left) > 0 {
				next()
				patience.Reset(r.config.Patience)
			}
		case <-patience.C:
			if running < mostAtOnce && len(left) > 0 {
				next()
			}
		case <-ctx.Done():
			return ctx.Err()
		}
	}
	return failure
}

// candidates returns the addresses of nodes in the order in which they are asked: healthy nodes, seeds,
// other nodes.
func (r *Refresher) candidates(t *Topology) []string {
	var well, others []string
	if t != nil {
		for _, i := range rand.Perm(len(t.Nodes)) {
			if n := &t.Nodes[i]; n.Health() == Well {
				well = append(well, n.Addr)
			} else if n.Flags&Handshake == 0 {
				others = append(others, n.Addr)
			}
		}
	}
	var order []string
	add := func(addrs []string) {
		for _, addr := range addrs[:min(len(addrs), mostAsked)] {
			known := false
			for _, other := range order {
				known = known || other == addr
			}
			if !known {
				order = append(order, addr)
			}
		}
	}
	add(well)
	seeds := r.config.Addresses.Seeds
	shuffled := make([]string, len(seeds))
	for to, from := range rand.Perm(len(seeds)) {
		shuffled[to] = seeds[from]
	}
	add(shuffled)
	add(others)
	return order
}

// retryShards is the number of refreshes without CLUSTER SHARDS after a node did not know the command.
// Then it is sent again, because the servers may have been upgraded.
const retryShards = 64

// forms returns the commands whose replies have the topology, in the order in which they are sent.
func (r *Refresher) forms() []Command {
	all := []Command{Shards, Nodes, SlotRanges}
	if r.noShards > 0 {
		return all[1:]
	}
	return all
}

// learn records which commands nodes know, according to an answer.
func (r *Refresher) learn(a *answer) {
	switch {
	case a.noShards:
		r.noShards = retryShards
	case a.err != nil:
		r.noShards = 0
	}
}

// ask sends one form after another to a node until a reply is conclusive.
func (r *Refresher) ask(ctx context.Context, addr string, forms []Command) (a answer) {
	ctx, cancel := context.WithTimeout(ctx, r.config.Timeout)
	defer cancel()
	var replies Replies
	commands := []Command{0, Info}
	for _, form := range forms {
		commands[0] = form
		frames, err := r.config.Asker.Ask(ctx, addr, commands)
		if err == nil && len(frames) != len(commands) {
			err = fmt.Errorf("%d replies to %d commands", len(frames), len(commands))
		}
		if err != nil {
			if a.topology == nil {
				a.err = err
			}
			return a
		}
		for i, c := range commands {
			replies[c] = frames[i]
		}
		commands = commands[:1]
		t, err := Parse(addr, r.config.Addresses, replies)
		switch {
		case err == nil:
			a.topology, a.err = t, nil
			if t.Doubt == "" {
				return a
			}
		case a.topology == nil:
			var refused *RefusedError
			if a.err == nil || !errors.As(err, &refused) {
				a.err = err // a refusal does not replace the error of a reply
			}
			again := worthAnotherForm(err)
			a.noShards = a.noShards || again && form == Shards
			if !again {
				return a
			}
		}
	}
	return a
}

// worthAnotherForm reports whether another command may succeed after this error: the node does not
// know the first one or does not permit it, or its reply could not be parsed.
func worthAnotherForm(err error) bool {
	var refused *RefusedError
	if !errors.As(err, &refused) {
		return true
	}
	text := strings.ToLower(refused.Text)
	return strings.HasPrefix(text, "err unknown ") || strings.HasPrefix(text, "noperm ")
}
