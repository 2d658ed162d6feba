package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// receive returns the next message within ten seconds.
func receive(t testing.TB, s *redis.Subscription) redis.Message {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	m, err := s.Receive(ctx)
	must(t, err)
	return m
}

func TestSubscribe(t *testing.T) {
	eachProtocol(t, func(t *testing.T, c *redis.Client, is func(got, want string)) {
		ctx := t.Context()
		s, err := c.Subscribe(ctx, redis.Topics{Channels: []string{"news", "other"}, Patterns: []string{"user:*"}, Shards: []string{"shard"}})
		must(t, err)
		defer s.Close()
		is(say(c.Publish(ctx, "news", "one")), "1 <nil>")
		is(say(c.Publish(ctx, "user:7", "two")), "1 <nil>")
		is(say(c.SPublish(ctx, "shard", "three")), "1 <nil>")
		is(say(c.Publish(ctx, "nobody's", "lost")), "0 <nil>")
		is(say(receive(t, s)), "{0 news  one false 0}")
		is(say(receive(t, s)), "{0 user:7 user:* two false 0}")
		is(say(receive(t, s)), "{0 shard  three true 0}")

		// Another subscription on the same connection has one topic in common.
		o, err := c.Subscribe(ctx, redis.Topics{Channels: []string{"news"}})
		must(t, err)
		is(say(c.Publish(ctx, "news", "both")), "1 <nil>")
		is(receive(t, s).Payload+receive(t, o).Payload, "bothboth")
		s.Remove(redis.Topics{Channels: []string{"news"}})
		must(t, s.Add(ctx, redis.Topics{Channels: []string{"later"}}))
		is(say(c.Publish(ctx, "news", "o's")), "1 <nil>")
		is(say(c.Publish(ctx, "later", "s's")), "1 <nil>")
		is(receive(t, o).Payload+receive(t, s).Payload, "o'ss's")
		o.Close()
		testkit.Eventually(t, 10*time.Second, func() error {
			if n, err := c.Publish(ctx, "news", "nobody's"); n > 0 || err != nil {
				return fmt.Errorf("%d subscribers are left, %w", n, err)
			}
			return nil
		})
		if _, err := o.Receive(ctx); !errors.Is(err, redis.ErrUnsubscribed) {
			t.Errorf("a closed subscription: %v", err)
		}
		short, cancel := context.WithTimeout(ctx, 10*time.Millisecond)
		defer cancel()
		if _, err := s.Receive(short); !errors.Is(err, context.DeadlineExceeded) {
			t.Errorf("nothing to receive: %v", err)
		}
	})
}

// TestMessagesEnd: an iteration ends with the subscription.
func TestMessagesEnd(t *testing.T) {
	c := start(t)
	s, err := c.Subscribe(t.Context(), redis.Topics{Channels: []string{"c"}})
	must(t, err)
	for i := range 3 {
		c.Publish(t.Context(), "c", strconv.Itoa(i))
	}
	n := 0
	for m, err := range s.Messages(t.Context()) {
		must(t, err)
		if m.Payload != strconv.Itoa(n) {
			t.Errorf("message %d is %q", n, m.Payload)
		}
		if n++; n == 3 {
			s.Close()
		}
	}
	if n != 3 {
		t.Errorf("%d messages, want 3", n)
	}
}

// TestGap: a lost connection leaves a Gap, and messages published after it are received.
func TestGap(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	c := connect(t, redis.Options{Addr: server.Addr})
	var subs []*redis.Subscription
	for i := range 5 {
		s, err := c.Subscribe(t.Context(), redis.Topics{Channels: []string{"all", "own" + strconv.Itoa(i)}})
		must(t, err)
		defer s.Close()
		subs = append(subs, s)
	}
	for round := range 3 {
		if round == 2 {
			server.Restart(t)
		} else {
			must(t, c.Do(t.Context(), nil, redis.Cmd("CLIENT", "KILL", "TYPE", "pubsub")))
		}
		for i, s := range subs {
			if m := receive(t, s); m.Kind != redis.Gap || m.Lost != 0 {
				t.Fatalf("round %d: subscription %d got %+v, want a gap", round, i, m)
			}
		}
		// The Gap shows that the subscription is confirmed again.
		want := "round " + strconv.Itoa(round)
		testkit.Eventually(t, 10*time.Second, func() error {
			_, err := c.Publish(t.Context(), "all", want)
			return err
		})
		for i, s := range subs {
			if m := receive(t, s); m.Payload != want {
				t.Fatalf("round %d: subscription %d got %+v", round, i, m)
			}
		}
	}
}

// TestSlowReceiver: a subscription that receives slowly loses messages and learns how many; another
// subscription loses none.
func TestSlowReceiver(t *testing.T) {
	c := start(t, func(o *redis.Options) { o.SubscriptionBytes = 20_000 })
	ctx := t.Context()
	slow, err := c.Subscribe(ctx, redis.Topics{Channels: []string{"c"}})
	must(t, err)
	defer slow.Close()
	const n = 1000
	quick, err := c.Subscribe(ctx, redis.Topics{Channels: []string{"c"}})
	must(t, err)
	defer quick.Close()
	for i := range n {
		_, err := c.Publish(ctx, "c", strconv.Itoa(i))
		must(t, err)
		if m := receive(t, quick); m.Payload != strconv.Itoa(i) {
			t.Fatalf("message %d is %+v", i, m)
		}
	}
	got, lost := 0, 0
	for got+lost < n {
		m := receive(t, slow)
		switch {
		case m.Kind == redis.Gap && m.Lost > 0 && lost == 0:
			lost = m.Lost
		case m.Kind == redis.Published && m.Payload == strconv.Itoa(got) && lost == 0:
			got++
		default:
			t.Fatalf("after %d messages and %d lost ones: %+v", got, lost, m)
		}
	}
	if lost < 500 {
		t.Errorf("%d of %d were lost", lost, n)
	}
	_, err = c.Publish(ctx, "c", "after")
	must(t, err)
	if m := receive(t, slow); m.Payload != "after" {
		t.Errorf("after the gap: %+v", m)
	}
}

// TestSubscribeRefused: a caller that may not subscribe gets an error, and others continue.
func TestSubscribeRefused(t *testing.T) {
	testkit.NoLeaks(t)
	server := testkit.StartRedis(t)
	admin := connect(t, redis.Options{Addr: server.Addr})
	must(t, admin.Do(t.Context(), nil, redis.Cmd("ACL", "SETUSER", "limited", "on", ">secret", "+@all", "~*", "resetchannels", "&open*")))
	c := connect(t, redis.Options{Addr: server.Addr, User: "limited", Password: "secret"})
	s, err := c.Subscribe(t.Context(), redis.Topics{Channels: []string{"open"}})
	must(t, err)
	defer s.Close()
	_, err = c.Subscribe(t.Context(), redis.Topics{Channels: []string{"closed"}})
	var e *redis.ServerError
	if !errors.As(err, &e) || e.Code != "NOPERM" || slipstream.OutcomeOf(err) != slipstream.Refused {
		t.Errorf("got %v", err)
	}
	_, err = admin.Publish(t.Context(), "open", "x")
	must(t, err)
	if m := receive(t, s); m.Payload != "x" {
		t.Errorf("got %+v", m)
	}
	// The permission is revoked, which closes the connection.
	must(t, admin.Do(t.Context(), nil, redis.Cmd("ACL", "SETUSER", "limited", "resetchannels")))
	ctx, cancel := context.WithTimeout(t.Context(), 10*time.Second)
	defer cancel()
	if m, err := s.Receive(ctx); !errors.As(err, &e) || e.Code != "NOPERM" {
		t.Errorf("got %+v, %v", m, err)
	}
}

// TestSubscribeCloses: Close ends all waiting calls, and no goroutine is left.
func TestSubscribeCloses(t *testing.T) {
	c := start(t)
	s, err := c.Subscribe(t.Context(), redis.Topics{Channels: []string{"c"}})
	must(t, err)
	ended := make(chan error, 1)
	go func() { // ends with the client
		_, err := s.Receive(context.Background())
		ended <- err
	}()
	must(t, c.Close())
	if err := <-ended; err == nil {
		t.Error("Receive returned a message")
	}
	if _, err := c.Subscribe(t.Context(), redis.Topics{Channels: []string{"c"}}); slipstream.OutcomeOf(err) != slipstream.Closed {
		t.Errorf("after Close: %v", err)
	}
	s.Close()
}

// TestSubscribeStorm: many subscriptions are opened and closed concurrently while connections are
// lost. A confirmed subscription receives everything that is published from then on, unless there
// is a gap.
func TestSubscribeStorm(t *testing.T) {
	c := start(t)
	random := testkit.Rand(t)
	ctx := t.Context()
	stop := make(chan struct{})
	var killer sync.WaitGroup
	killer.Go(func() {
		for {
			select {
			case <-stop:
				return
			case <-time.After(30 * time.Millisecond):
				c.Do(ctx, nil, redis.Cmd("CLIENT", "KILL", "TYPE", "pubsub"))
			}
		}
	})
	var all sync.WaitGroup
	for i := range 16 {
		r := testkit.Fork(random.Uint64(), uint64(i))
		all.Go(func() {
			for round := range 60 {
				channel := "c" + strconv.Itoa(r.IntN(5))
				s, err := c.Subscribe(ctx, redis.Topics{Channels: []string{channel, "own" + strconv.Itoa(i)}})
				if err != nil {
					t.Error(err)
					return
				}
				want := fmt.Sprint(i, " ", round)
				if _, err := c.Publish(ctx, channel, want); err != nil {
					t.Error(err)
				}
				for {
					m := receive(t, s)
					if m.Kind == redis.Gap || m.Payload == want {
						break
					}
				}
				s.Close()
			}
		})
	}
	all.Wait()
	close(stop)
	killer.Wait()
	var channels []string
	testkit.Eventually(t, 10*time.Second, func() error {
		if err := c.Do(ctx, &channels, redis.Cmd("PUBSUB", "CHANNELS")); err != nil || len(channels) > 0 {
			return fmt.Errorf("the server still knows %v, %w", channels, err)
		}
		return nil
	})
}
