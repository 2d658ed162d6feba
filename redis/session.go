package redis

import (
	"context"
	"errors"
	"fmt"
	"time"
)

// A Session is a connection dedicated to its caller, for commands that change the state of a
// connection: WATCH, MULTI, SELECT, WAIT after writes. It must be used by one goroutine at a time
// and must be closed. A lost connection is not reopened, because its state is lost, too: all
// further calls fail as NotSent.
type Session struct {
	client *Client
	node   *node
	x      *exclusive // nil if closed
	state  sessionState
}

// sessionState describes how a session has changed the state of its connection.
type sessionState struct {
	watching bool
	multi    bool
	other    bool // the state is not one that other callers should find
}

// Session returns a connection dedicated to the caller. In a cluster, it is a connection to the
// node of the keys, which must be in one slot, or to any node if there are none. The session stays
// at that node, and its commands fail with MOVED if the slot moves.
func (c *Client) Session(ctx context.Context, keys ...string) (*Session, error) {
	n, err := c.routeKeys(keys)
	if err != nil {
		return nil, c.fail.NotSent("session", err)
	}
	x, err := c.exclusives.lease(ctx, n)
	if err != nil {
		return nil, n.notLeased("session", err)
	}
	return &Session{client: c, node: n, x: x}, nil
}

// Close returns the connection. It may be called more than once.
func (s *Session) Close() {
	if s.x == nil {
		return
	}
	s.x.dirty = s.state != sessionState{}
	s.client.exclusives.giveBack(s.x)
	s.x = nil
}

// Do sends a command and decodes the reply into dst, as [Client.Do] does. All commands may be sent
// except those that turn the connection into a stream (SUBSCRIBE, MONITOR, SYNC) or stop its
// replies. Nothing is retried. If ctx ends before the reply has arrived, the session ends, unless
// the command is a blocking one; for those, see [Client.Do].
func (s *Session) Do(ctx context.Context, dst any, cmd Command) error {
	if err := s.sendable(&cmd); err != nil {
		return err
	}
	start, before := time.Now(), s.state
	s.note(&cmd)
	reply, failure := s.client.waitAlone(ctx, s.x, &cmd)
	var err error
	switch {
	case failure != nil:
		err = failure
	default:
		if e := serverErrorIn(reply); e != nil {
			if cmd.info.name == "WATCH" {
				s.state = before // WATCH was not executed, so the state is unchanged
			}
			err = s.x.node.fail.With(cmd.name, e.outcome(cmd.info, cmd.frame), e)
			if r := s.client.router; r != nil {
				r.learn(s.node, &cmd, e)
			}
		} else if bad := decode(reply, dst); bad != nil {
			err = s.x.node.fail.Executed(cmd.name, bad)
		}
	}
	if hooks := &s.client.hooks; hooks.Observing() {
		hooks.Observe(ctx, Observation{Op: cmd.name, Start: start, Requests: 1, Attempts: 1, RequestBytes: len(cmd.frame), ReplyBytes: len(reply), Err: err})
	}
	return err
}

// Wait waits until replicas have received what the session has written, and returns how many have.
// It waits for at most limit; if limit is 0, it waits until ctx ends.
func (s *Session) Wait(ctx context.Context, replicas int, limit time.Duration) (int64, error) {
	var n int64
	err := s.Do(ctx, &n, waitCommand("WAIT", limit, replicas))
	return n, err
}

// WaitAOF is like [Session.Wait], but waits for append-only files of this server (local is 1 or 0)
// and of replicas (Redis 7.2).
func (s *Session) WaitAOF(ctx context.Context, local, replicas int, limit time.Duration) (done [2]int64, err error) {
	err = s.Do(ctx, &done, waitCommand("WAITAOF", limit, local, replicas))
	return done, err
}

func waitCommand(name string, limit time.Duration, args ...any) Command {
	cmd := Cmd(name, append(args, max(milliseconds(limit), 0))...)
	cmd.blockFor = limit
	if limit <= 0 {
		cmd.blockFor = -1
	}
	return cmd
}

// sendable returns why a command cannot be sent, or nil if it can.
func (s *Session) sendable(cmd *Command) error {
	switch {
	case s.x == nil:
		return s.client.fail.NotSent(cmd.name, errors.New("the session is closed"))
	case cmd.info == nil:
		return s.client.fail.NotSent("command", errEmptyCommand)
	case cmd.err != nil:
		return s.client.fail.NotSent(cmd.name, cmd.err)
	case cmd.info.never:
		return s.client.fail.NotSent(cmd.name, refusal(cmd.info.refusal))
	}
	if err := s.x.look(); err != nil {
		return s.x.node.fail.With(cmd.name, s.x.outcomeOfLost(err), fmt.Errorf("the session's connection is lost: %w", err))
	}
	return nil
}

// note records how a command changes the state of the connection.
func (s *Session) note(cmd *Command) {
	switch cmd.info.name {
	case "WATCH":
		s.state.watching = true
	case "MULTI":
		s.state.multi = true
	case "UNWATCH":
		s.state.watching = false
	case "EXEC", "DISCARD", "RESET":
		s.state.watching, s.state.multi = false, false
	default:
		known := cmd.info.refusal == "" || cmd.info.refusal == whyWaits
		s.state.other = s.state.other || !known || cmd.info == unknownCommand
	}
	if cmd.info.name == "RESET" {
		s.state.other = true // user, database and name may differ from the options
	}
}
