package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/internal/attempt"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
)

// How a router works until there is a topology, and how it queries one.

// member returns the node for a node of the topology. If it is the seed of earlier calls, its
// connection is kept.
func (k *router) member(n *cluster.Node) *node {
	if k.sharded {
		k.seedMu.Lock()
		defer k.seedMu.Unlock()
		if seed := k.seeded; seed != nil && seed.fail.Addr == n.Addr {
			k.seeded = nil
			return seed
		}
	}
	return k.open(n.Addr, n.Hostname)
}

// seed returns the node for calls while there is no topology, or nil if there is a topology.
func (k *router) seed() *node {
	k.seedMu.Lock()
	defer k.seedMu.Unlock()
	if len(k.nodes.Table().Members()) > 0 {
		return nil
	}
	if k.seeded == nil {
		k.seeded = k.openSeed()
	}
	return k.seeded
}

// leaveSeed closes the seed, unless there is none or it is a node of the topology.
func (k *router) leaveSeed() {
	k.seedMu.Lock()
	var seed *node
	if len(k.nodes.Table().Members()) > 0 {
		seed, k.seeded = k.seeded, nil
	}
	k.seedMu.Unlock()
	if seed != nil {
		k.leave(seed)
	}
}

// startGrace is how long connect waits for connections to the other masters after the first one. The
// first call to a master without a connection would need a pause and a refresh.
const startGrace = 100 * time.Millisecond

// connect waits until the topology is known and there is a connection to each master. After the first
// connection it waits for the others for at most startGrace.
func (k *router) connect(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, k.core.opts.dialTimeout())
	defer cancel()
	if err := k.refresher.Ready(ctx); err != nil {
		return err
	}
	var first time.Time // time of the first connection
	for {
		if up, _ := k.one().engine.Up(); up > 0 && first.IsZero() {
			first = time.Now()
		}
		if !first.IsZero() && (k.mastersUp() || time.Since(first) >= startGrace) {
			return nil
		}
		if !attempt.Sleep(ctx, time.Millisecond) {
			if !first.IsZero() {
				return nil
			}
			return k.notConnected(context.Cause(ctx))
		}
	}
}

// notConnected returns the error of connect if there is no connection when cause ends the wait.
func (k *router) notConnected(cause error) error {
	err := fmt.Errorf("no connection to the master: %w", cause)
	if k.sharded {
		err = fmt.Errorf("no connection to any of the %d nodes that the cluster lists: %w", len(k.nodes.Table().Members()), cause)
	}
	if e := k.dialFailed.Load(); e != nil {
		return fmt.Errorf("%w; the latest attempt, to %s: %w", err, e.Addr, e.Err)
	}
	return err
}

// mastersUp reports whether there is a connection to each master that the cluster considers healthy.
func (k *router) mastersUp() bool {
	for _, member := range k.nodes.Table().Members() {
		if member.Node.Replica || member.Node.Health() != cluster.Well {
			continue
		}
		if up, _ := member.Peer.engine.Up(); up == 0 {
			return false
		}
	}
	return true
}

// Ask implements cluster.Asker. It uses the shared connection if there is one.
func (k *router) Ask(ctx context.Context, addr string, commands []cluster.Command) ([][]byte, error) {
	var frame []byte
	for _, command := range commands {
		args := command.Args()
		frame = resp.AppendCommand(frame, args[0], args[1])
	}
	aside := &node{aside: k.nodeOptions(addr)}
	if member := k.nodes.Table().Find(addr); member != nil {
		if up, _ := member.Peer.engine.Up(); up > 0 {
			return askShared(ctx, member.Peer.engine, frame, len(commands))
		}
		aside.name(member.Node.Hostname)
	}
	return askAside(ctx, aside, frame, len(commands))
}

// askAside sends a frame of n commands on a new connection. It uses only the fields aside and
// hostname of the node.
func askAside(ctx context.Context, to *node, frame []byte, n int) ([][]byte, error) {
	to.aside.Cache = nil
	x, err := openExclusive(ctx, to)
	if err != nil {
		return nil, err
	}
	defer x.close()
	if _, err := x.send(frame); err != nil {
		return nil, err
	}
	replies := make([][]byte, n)
	for i := range replies {
		reply, err := x.receive(ctx, max(to.aside.stallTimeout(), 0))
		if errors.Is(err, errInterrupted) {
			err = context.Cause(ctx)
		}
		if err != nil {
			return nil, err
		}
		replies[i] = bytes.Clone(reply)
	}
	return replies, nil
}

// askShared sends a frame of n commands on the shared connection.
func askShared(ctx context.Context, engine *pipe.Engine, frame []byte, n int) ([][]byte, error) {
	call := engine.Acquire()
	defer call.Release()
	call.Frame, call.Replies = append(call.Frame[:0], frame...), int32(n)
	if err := engine.Do(ctx, call); err != nil {
		return nil, err
	}
	replies := make([][]byte, n)
	for i := range replies {
		replies[i] = bytes.Clone(call.ReplyAt(i))
	}
	return replies, nil
}
