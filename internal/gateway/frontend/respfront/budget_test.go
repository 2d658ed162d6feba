package respfront

import (
	"context"
	"fmt"
	"io"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend"
	"github.com/slipstream-go/slipstream/internal/loop"
	"github.com/slipstream-go/slipstream/internal/testkit"
)

// Unread small answers do not make large ones fail.
func TestSmallAnswersLeaveRoomForLargeOnes(t *testing.T) {
	bothBackends(t, echo, Config{ConnConfig: frontend.ConnConfig{Large: loop.NewLargeBudget(1 << 20), Budget: loop.NewBudget(512 << 20)}}, func(t *testing.T, f *fixture) {
		text := []byte(strings.Repeat(command1("ECHO", strings.Repeat("y", 60_000)), 500))
		for range 16 {
			c := f.dial(t)
			go func() { _, _ = c.conn.Write(text) }() // ends when the server or the test closes it
		}
		testkit.Eventually(t, 20*time.Second, func() error {
			if n := f.server.EngineStats().Unwritten; n < 2<<20 {
				return fmt.Errorf("%d bytes of small answers wait, want more than the large ones may be", n)
			}
			return nil
		})
		c := f.dial(t)
		large := strings.Repeat("x", 100_000)
		c.send(command1("ECHO", large) + command1("GET", "depts:1000001"))
		if got := c.reply(); got != bulk(large) {
			t.Errorf("a large echo: got %.100q", got)
		}
		if got := c.reply(); !strings.HasPrefix(got, "$100002") {
			t.Errorf("a large document: got %.100q", got)
		}
	})
}

// Where clients must log in they have LoginTimeout for it, whatever else they send.
func TestLoginTimeout(t *testing.T) {
	for _, required := range []bool{true, false} {
		bothBackends(t, echo, Config{Users: users(), RequireAuth: required, LoginTimeout: 300 * time.Millisecond}, func(t *testing.T, f *fixture) {
			known, silent, noisy := f.dial(t), f.dial(t), f.dial(t)
			known.send(command1("AUTH", otherPassword))
			if got := known.reply(); got != "+OK" {
				t.Fatalf("AUTH: got %q", got)
			}
			noisy.send("PING\r\n")
			noisy.reply()
			if required {
				for _, c := range []*client{silent, noisy} {
					c.conn.SetReadDeadline(time.Now().Add(10 * time.Second))
					if n, err := c.conn.Read(make([]byte, 1)); n != 0 || err != io.EOF {
						t.Errorf("without a login: got %d bytes, %v, want the end", n, err)
					}
				}
			} else {
				time.Sleep(time.Second) // more than the timeout and a sweep
				silent.send("PING\r\n")
				if got := silent.reply(); got != "+PONG" {
					t.Errorf("no login is required: got %q", got)
				}
			}
			known.send("PING\r\n")
			if got := known.reply(); got != "+PONG" {
				t.Errorf("after the login: got %q", got)
			}
		})
	}
}

// The memory of a command that waits for a load counts in the budget.
func TestWaitingCommandsAreWeighed(t *testing.T) {
	var release chan struct{}
	slow := originFunc(func(ctx context.Context, r cache.ResourceID, id string) ([]byte, error) {
		if id == "500000" {
			<-release
		}
		return echo(ctx, r, id)
	})
	bothBackends(t, slow, Config{ConnConfig: frontend.ConnConfig{Budget: loop.NewBudget(4 << 20)}}, func(t *testing.T, f *fixture) {
		release = make(chan struct{})
		end := sync.OnceFunc(func() { close(release) })
		defer end()
		c := f.dial(t)
		c.send(command1(append([]string{"MGET"}, strings.Split(strings.TrimSuffix(strings.Repeat("depts:500000 ", 10_000), " "), " ")...)...))
		testkit.Eventually(t, 10*time.Second, func() error {
			if n := f.server.config.Budget.Stats().Used; n < 400_000 {
				return fmt.Errorf("%d bytes are used by a command of 10,000 keys, want some 50 a key", n)
			}
			return nil
		})
		end()
		if got := c.reply(); !strings.HasPrefix(got, "*10000") {
			t.Errorf("got %.100q", got)
		}
		testkit.Eventually(t, 10*time.Second, func() error {
			if n := f.server.config.Budget.Stats().Used; n > 400_000 {
				return fmt.Errorf("%d bytes are used after the answer", n)
			}
			return nil
		})
	})
}
