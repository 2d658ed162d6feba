package redis_test

import (
	"context"
	"errors"
	"net"
	"strings"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// faultyConn fails to write data that starts with a given command, as often as a test requests.
type faultyConn struct {
	net.Conn
	fail *atomic.Int32
	what string
}

func (c *faultyConn) Write(b []byte) (int, error) {
	if strings.Contains(string(b), c.what) && c.fail.Add(-1) >= 0 {
		return 0, errPlanted
	}
	return c.Conn.Write(b)
}

// faulty returns a function that dials connections on which the first n writes of a command fail.
func faulty(what string, n *atomic.Int32) func(context.Context, string, string) (net.Conn, error) {
	return func(ctx context.Context, network, addr string) (net.Conn, error) {
		conn, err := new(net.Dialer).DialContext(ctx, network, addr)
		if err != nil {
			return nil, err
		}
		return &faultyConn{conn, n, what}, nil
	}
}

// TestSubscribeWriteFails: the connection is reopened and everything is requested again. Topics
// that were confirmed get a gap, and callers of Subscribe notice nothing.
func TestSubscribeWriteFails(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	var fail atomic.Int32
	c := connect(t, redis.Options{Addr: server.Addr, Dialer: faulty("SUBSCRIBE", &fail), Backoff: time.Millisecond})
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	fail.Store(2)
	first, err := c.Subscribe(ctx, redis.Topics{Channels: []string{"first"}})
	must(t, err)
	defer first.Close()
	_, err = c.Publish(ctx, "first", "a")
	must(t, err)
	if m := receive(t, first); m.Payload != "a" {
		t.Errorf("the first got %+v: it was never confirmed before, so there should be no gap", m)
	}
	fail.Store(3)
	second, err := c.Subscribe(ctx, redis.Topics{Channels: []string{"second"}, Patterns: []string{"f*"}})
	must(t, err)
	defer second.Close()
	if m := receive(t, first); m.Kind != redis.Gap {
		t.Errorf("the first got %+v, want a gap", m)
	}
	if n, err := c.Publish(ctx, "first", "b"); n != 2 || err != nil {
		t.Errorf("%d subscribers, %v, want a channel and a pattern", n, err)
	}
	if a, b := receive(t, first), receive(t, second); a.Payload != "b" || b.Payload != "b" || b.Pattern != "f*" {
		t.Errorf("got %+v and %+v", a, b)
	}
	if n := fail.Load(); n >= 0 {
		t.Errorf("%d faults did not occur", n)
	}
}

// TestSubscribeToADeafServer: callers are released when their contexts end, even if the server does
// not read their requests, and so is the caller of Close.
func TestSubscribeToADeafServer(t *testing.T) {
	testkit.NoLeaks(t)
	deaf := make(chan struct{})
	s := fake(t, func(conn int, args []string) string {
		if args[0] == "SUBSCRIBE" {
			<-deaf
		}
		return ":7\r\n"
	})
	defer close(deaf)
	c := connect(t, redis.Options{Addr: s.Addr, StallTimeout: -1})
	huge := strings.Repeat("x", 16<<20) // more than the kernel buffers
	for i := range 3 {
		ctx, cancel := context.WithTimeout(t.Context(), 30*time.Millisecond)
		began := time.Now()
		_, err := c.Subscribe(ctx, redis.Topics{Channels: []string{huge[i:]}})
		cancel()
		if !errors.Is(err, context.DeadlineExceeded) || slipstream.OutcomeOf(err) != slipstream.NotSent || time.Since(began) > 5*time.Second {
			t.Errorf("after %v: %v", time.Since(began), err)
		}
	}
	must(t, c.Close())
}

// TestSubscribeRefusedBesideOthers: if topics are requested together because the connection was
// lost, each of them is refused separately.
func TestSubscribeRefusedBesideOthers(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	admin := connect(t, redis.Options{Addr: server.Addr})
	allow := func(channels ...string) {
		args := []any{"SETUSER", "limited", "on", ">secret", "+@all", "~*", "resetchannels"}
		for _, name := range channels {
			args = append(args, "&"+name)
		}
		must(t, admin.Do(t.Context(), nil, redis.Cmd("ACL", args...)))
	}
	allow("open*", "closed")
	c := connect(t, redis.Options{Addr: server.Addr, User: "limited", Password: "secret"})
	var open []*redis.Subscription
	for _, channels := range [][]string{{"open1"}, {"open2", "open3"}} {
		s, err := c.Subscribe(t.Context(), redis.Topics{Channels: channels})
		must(t, err)
		defer s.Close()
		open = append(open, s)
	}
	closed, err := c.Subscribe(t.Context(), redis.Topics{Channels: []string{"closed", "open1"}})
	must(t, err)
	defer closed.Close()
	allow("open*") // the server closes the connection
	for i, s := range open {
		if m := receive(t, s); m.Kind != redis.Gap {
			t.Errorf("subscription %d got %+v, want a gap", i, m)
		}
	}
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	var e *redis.ServerError
	for {
		m, err := closed.Receive(ctx)
		if err == nil && m.Kind == redis.Gap {
			continue
		}
		if !errors.As(err, &e) || e.Code != "NOPERM" || slipstream.OutcomeOf(err) != slipstream.Refused {
			t.Errorf("got %+v, %v", m, err)
		}
		break
	}
	for _, channel := range []string{"open1", "open3"} {
		_, err := admin.Publish(t.Context(), channel, channel)
		must(t, err)
	}
	if a, b := receive(t, open[0]), receive(t, open[1]); a.Payload != "open1" || b.Payload != "open3" {
		t.Errorf("got %+v and %+v", a, b)
	}
}

// TestSubscribeAgain: a message for a subscription that has ended is not received by the next one
// to the same channel, because the server may omit messages before the new one is confirmed.
func TestSubscribeAgain(t *testing.T) {
	testkit.NoLeaks(t)
	const message = ">3\r\n+message\r\n+c\r\n+"
	again := make(chan struct{})
	first := true
	s := fake(t, func(conn int, args []string) string {
		switch args[0] {
		case "UNSUBSCRIBE":
			<-again
			return message + "old\r\n>3\r\n+unsubscribe\r\n+c\r\n:0\r\n"
		case "SUBSCRIBE":
			confirmed := ">3\r\n+subscribe\r\n+c\r\n:1\r\n"
			if first {
				first = false
				return confirmed
			}
			return confirmed + message + "new\r\n"
		}
		return ":7\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr})
	topics := redis.Topics{Channels: []string{"c"}}
	one, err := c.Subscribe(t.Context(), topics)
	must(t, err)
	one.Close()
	go func() { // ends when message two has arrived
		for redis.TopicCount(c) == 0 {
			time.Sleep(time.Millisecond)
		}
		close(again)
	}()
	two, err := c.Subscribe(t.Context(), topics)
	must(t, err)
	defer two.Close()
	if m := receive(t, two); m.Payload != "new" {
		t.Errorf("got %+v", m)
	}
}
