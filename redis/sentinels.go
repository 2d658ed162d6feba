package redis

import (
	"context"
	"errors"
	"net"
	"os"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/wire/resp"
	"github.com/slipstream-go/slipstream/redis/internal/cluster"
	"github.com/slipstream-go/slipstream/redis/internal/sentinel"
)

// A Sentinel setup is a cluster whose slots all belong to one master: newSentinelRouter makes the
// same router, with a topology of one shard (cluster.Single) and sharded set to false, so that
// every call has slot 0 and no command is split by slot. The router only uses the interface
// refresher, which redis/internal/sentinel implements; that package handles replies and time, but
// no sockets. This file opens its connections.
//
//   - When the old master has left, its subscriptions are closed immediately, its calls get
//     DialTimeout to end, and then sessions and commands that block there are cut off. A call that
//     finds its node closed continues at the owner (judge), unless the client was closed.
//   - While there is no master, calls get a node without connections (openNowhere), so that they
//     wait as in any failover, and their error contains the answers of the Sentinels.

// sentinels communicates with the Sentinels from which a router learns its master. It implements
// sentinel.Asker.
type sentinels struct {
	// Immutable.
	router    *router
	options   Options // of connections to Sentinels, without an address
	refresher *sentinel.Refresher
}

// listenPing is how long a subscription may be silent before the client sends PING.
const listenPing = 5 * time.Second

var errNoAnswerYet = errors.New("no Sentinel has answered yet")

// newSentinelRouter returns a router whose only node is the master named by the Sentinels.
func newSentinelRouter(c *core, h *hub, o *SentinelOptions) *router {
	k := makeRouter(c, h, cluster.Addresses{Map: o.MapAddr, Seeds: o.Sentinels})
	k.policy = policies[o.ReadFrom]
	s := &sentinels{router: k, options: Options{
		User: o.SentinelUser, Password: o.SentinelPassword, TLS: o.SentinelTLS, ClientName: o.ClientName,
		OmitClientInfo: o.OmitClientInfo, Protocol: o.Protocol, DialTimeout: o.DialTimeout, StallTimeout: o.StallTimeout,
		Dialer: o.Dialer, Limits: Limits{Bulk: sentinel.MaxReply, Elements: sentinel.MaxElements, Frame: sentinel.MaxReply, Streamed: sentinel.MaxReply},
	}}
	if s.options.Dialer == nil {
		s.options.Dialer = k.dial
	}
	k.openSeed = s.openNowhere
	s.refresher = sentinel.New(sentinel.Config{
		Name: o.MasterName, Addresses: &k.addresses, Asker: s, Apply: s.apply, Failed: s.failed,
		Replicas: o.ReadFrom != ReadMaster,
		Interval: o.RefreshEvery, Timeout: o.dialTimeout(),
	})
	k.refresher = s.refresher
	s.refresher.Start()
	return k
}

// apply applies a topology with a master.
func (s *sentinels) apply(t *cluster.Topology) {
	s.router.apply(t, s.router.nodes.Begin())
}

// failed reports to the user why there is no master.
func (s *sentinels) failed(err error) {
	hooks := &s.router.core.hooks
	hooks.Event(Event{Kind: DialFailed, Addr: hooks.Addr, At: time.Now(), Err: sentinelError(err)})
}

// openNowhere returns the node for calls before a master is known. It never has a connection, so the
// router makes these calls wait. It is closed when a master is known.
func (s *sentinels) openNowhere() *node {
	o := s.router.nodeOptions(strings.Join(s.router.addresses.Seeds, ","))
	o.TLS = nil
	o.Dialer = func(context.Context, string, string) (net.Conn, error) {
		if err := s.refresher.Err(); err != nil {
			return nil, sentinelError(err)
		}
		return nil, errNoAnswerYet
	}
	return s.router.add(s.router.core.newNode(o, "", nil, nil))
}

// at returns the options for connections to a Sentinel.
func (s *sentinels) at(addr string) Options {
	o := s.options
	o.Addr = addr
	return o
}

// Ask implements sentinel.Asker.
func (s *sentinels) Ask(ctx context.Context, addr string, commands [][]string) ([][]byte, error) {
	var frame []byte
	for _, args := range commands {
		frame = resp.AppendCommand(frame, args...)
	}
	return askAside(ctx, &node{aside: s.at(addr)}, frame, len(commands))
}

// Role implements sentinel.Asker.
func (s *sentinels) Role(ctx context.Context, addr string) ([]byte, error) {
	replies, err := askAside(ctx, &node{aside: s.router.nodeOptions(addr)}, resp.AppendCommand(nil, "ROLE"), 1)
	if err != nil {
		return nil, err
	}
	return replies[0], nil
}

// Listen implements sentinel.Asker.
func (s *sentinels) Listen(ctx context.Context, addr string, channels []string, ready func(), heard func(channel, payload string)) error {
	x, err := openExclusive(ctx, &node{aside: s.at(addr)})
	if err != nil {
		return err
	}
	defer x.close()
	stop := context.AfterFunc(ctx, func() { _ = x.conn.Close() })
	defer stop()
	if _, err := x.send(resp.AppendCommand(nil, append([]string{"SUBSCRIBE"}, channels...)...)); err != nil {
		return err
	}
	for confirmed := 0; ; {
		frame, err := x.spoken(s.options.stallTimeout())
		if err != nil {
			return err
		}
		words, err := wordsOf(frame)
		switch {
		case err != nil:
			return err
		case words[0] == "subscribe":
			if confirmed++; confirmed == len(channels) {
				ready()
			}
		case words[0] == "message":
			heard(words[1], words[2])
		}
	}
}

// spoken returns the next message on a connection with subscriptions. It sends PING if the server is
// silent for listenPing.
func (x *exclusive) spoken(stall time.Duration) ([]byte, error) {
	if stall <= 0 {
		stall = defaultStall
	}
	limit := listenPing
	for pinged := false; ; pinged = true {
		if err := x.conn.SetReadDeadline(time.Now().Add(limit)); err != nil {
			return nil, err
		}
		frame, err := x.message()
		switch {
		case !errors.Is(err, os.ErrDeadlineExceeded):
			return frame, err
		case pinged:
			return nil, ErrStalled
		}
		limit = stall
		if _, err := x.send(resp.AppendCommand(nil, "PING")); err != nil {
			return nil, err
		}
	}
}

// wordsOf returns the first three words of a message. Missing words are empty.
func wordsOf(frame []byte) (words [3]string, err error) {
	v, _, err := resp.Parse(frame, resp.Limits{Bulk: sentinel.MaxReply, Elements: sentinel.MaxElements, Frame: sentinel.MaxReply})
	switch {
	case err != nil:
		return words, err
	case v.Kind == resp.SimpleError || v.Kind == resp.BulkError:
		return words, parseServerError(v.Str)
	}
	for i := range min(len(v.Elems), len(words)) {
		words[i] = string(v.Elems[i].Str)
	}
	return words, nil
}
