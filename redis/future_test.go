package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

func TestFutures(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	var futures []redis.Future
	for i := range 1000 {
		futures = append(futures, c.Start(ctx, redis.Cmd("ECHO", i)))
	}
	for i, f := range futures {
		var n int
		if err := f.Wait(&n); err != nil || n != i {
			t.Fatalf("%d: %d, %v", i, n, err)
		}
	}
	f := c.Start(ctx, redis.Cmd("ECHO", "text"))
	var n int
	if err := f.Wait(&n); slipstream.OutcomeOf(err) != slipstream.Executed {
		t.Errorf("a reply of the wrong type: %v", err)
	}
	f = c.Start(ctx, redis.Cmd("SET", "k", struct{}{}))
	if err := f.Wait(nil); slipstream.OutcomeOf(err) != slipstream.NotSent || !strings.Contains(err.Error(), "argument 2") {
		t.Errorf("a wrong argument: %v", err)
	}
	f = c.Start(ctx, redis.Command{})
	if err := f.Wait(nil); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("an empty command: %v", err)
	}
}

// A used handle does not affect the call that now has its memory.
func TestFuturesAreUsedOnce(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	var zero redis.Future
	if err := zero.Wait(nil); !errors.Is(err, redis.ErrReleased) {
		t.Errorf("the zero future: %v", err)
	}
	var old []redis.Future
	for i := range 2000 {
		f := c.Start(ctx, redis.Cmd("ECHO", i))
		for _, o := range old[max(0, len(old)-20):] {
			got := "nothing"
			if err := o.Wait(&got); !errors.Is(err, redis.ErrReleased) || got != "nothing" {
				t.Fatalf("a used future: %q, %v", got, err)
			}
		}
		var n int
		if err := f.Wait(&n); err != nil || n != i {
			t.Fatalf("%d: %d, %v", i, n, err)
		}
		old = append(old, f)
	}
}

// If several goroutines wait for the same future, one of them gets the reply.
func TestFuturesAreWaitedForByOne(t *testing.T) {
	c := start(t)
	for i := range 200 {
		f := c.Start(t.Context(), redis.Cmd("ECHO", i))
		var won atomic.Int32
		var all sync.WaitGroup
		for range 4 {
			all.Go(func() {
				n := -1
				switch err := f.Wait(&n); {
				case err == nil && n == i:
					won.Add(1)
				case !errors.Is(err, redis.ErrReleased) || n != -1:
					t.Errorf("%d, %v", n, err)
				}
			})
		}
		all.Wait()
		if won.Load() != 1 {
			t.Fatalf("%d goroutines got the reply", won.Load())
		}
	}
}

func TestFuturesEndWithTheirContext(t *testing.T) {
	testkit.NoLeaks(t)
	s := fake(t, func(int, []string) string { return silence })
	c := connect(t, redis.Options{Addr: s.Addr})
	ctx, cancel := context.WithCancel(t.Context())
	f := c.Start(ctx, redis.Cmd("GET", "k"))
	testkit.Eventually(t, 5*time.Second, func() error {
		if len(s.seen()) == 0 {
			return errors.New("not sent")
		}
		return nil
	})
	cancel()
	if err := f.Wait(nil); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Errorf("%v", err)
	}
	f = c.Start(ctx, redis.Cmd("GET", "k"))
	if err := f.Wait(nil); !errors.Is(err, context.Canceled) || slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("%v", err)
	}
}

// completed collects the results passed to a completer.
type completed struct {
	text string
	err  error
}

// completer calls a function.
type completer func(redis.Reply, error)

func (f completer) Complete(r redis.Reply, err error) { f(r, err) }

func TestCompleters(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	must(t, c.Do(ctx, nil, redis.Cmd("LPUSH", "list", "x")))
	results := make(chan completed, 1)
	collect := completer(func(r redis.Reply, err error) {
		b, bytesErr := r.Bytes()
		results <- completed{string(b), errors.Join(err, bytesErr)}
	})
	for i := range 100 {
		must(t, c.DoFunc(ctx, redis.Cmd("ECHO", i), collect))
		if r := <-results; r.text != strconv.Itoa(i) || r.err != nil {
			t.Fatalf("%d: %+v", i, r)
		}
	}
	for _, test := range []struct {
		cmd   redis.Command
		check func(redis.Reply, error) error
	}{
		{redis.Cmd("INCR", "n"), func(r redis.Reply, err error) error {
			n, intErr := r.Int()
			if n != 1 || r.IsNull() || string(r.Raw()) != ":1\r\n" {
				return fmt.Errorf("%d, %q", n, r.Raw())
			}
			return errors.Join(err, intErr)
		}},
		{redis.Cmd("GET", "none"), func(r redis.Reply, err error) error {
			if _, bytesErr := r.Bytes(); !r.IsNull() || !errors.Is(bytesErr, redis.ErrNull) {
				return fmt.Errorf("%v, %v", r.IsNull(), bytesErr)
			}
			return err
		}},
		{redis.Cmd("LRANGE", "list", 0, -1), func(r redis.Reply, err error) error {
			var list []string
			decodeErr := r.Decode(&list)
			if len(list) != 1 || list[0] != "x" {
				return fmt.Errorf("%q", list)
			}
			if _, intErr := r.Int(); intErr == nil {
				return errors.New("a list is not a number")
			}
			if _, bytesErr := r.Bytes(); bytesErr == nil {
				return errors.New("a list is not a string")
			}
			return errors.Join(err, decodeErr)
		}},
		{redis.Cmd("INCR", "list"), func(r redis.Reply, err error) error {
			var e *redis.ServerError
			if !errors.As(err, &e) || e.Code != "WRONGTYPE" || r.Raw() != nil || r.IsNull() {
				return fmt.Errorf("%v, %q", err, r.Raw())
			}
			return nil
		}},
	} {
		told := make(chan error, 1)
		must(t, c.DoFunc(ctx, test.cmd, completer(func(r redis.Reply, err error) { told <- test.check(r, err) })))
		if err := <-told; err != nil {
			t.Errorf("%v: %v", test.cmd, err)
		}
	}
	if err := c.DoFunc(ctx, redis.Cmd("SET", "k", struct{}{}), collect); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("%v", err)
	}
	ended, cancel := context.WithCancel(ctx)
	cancel()
	if err := c.DoFunc(ended, redis.Cmd("GET", "k"), collect); slipstream.OutcomeOf(err) != slipstream.NotSent || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
	if len(results) != 0 {
		t.Error("a completer was called for a call that was not made")
	}
}

// Panics and delays of completers are counted and do not affect other calls.
func TestCompletersThatMisbehave(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	const panics = 50
	var others sync.WaitGroup
	for i := range 200 {
		others.Go(func() {
			var n int
			if err := c.Do(ctx, &n, redis.Cmd("ECHO", i)); err != nil || n != i {
				t.Errorf("%d: %d, %v", i, n, err)
			}
		})
	}
	for range panics {
		must(t, c.DoFunc(ctx, redis.Cmd("PING"), completer(func(redis.Reply, error) { panic("completer") })))
	}
	slow := make(chan struct{})
	must(t, c.DoFunc(ctx, redis.Cmd("PING"), completer(func(redis.Reply, error) {
		time.Sleep(5 * time.Millisecond)
		close(slow)
	})))
	others.Wait()
	<-slow
	testkit.Eventually(t, 5*time.Second, func() error {
		if s := c.Stats(); s.CompleterPanics != panics || s.SlowCompleters == 0 {
			return fmt.Errorf("%d panics and %d slow completers counted", s.CompleterPanics, s.SlowCompleters)
		}
		return nil
	})
	must(t, c.Ping(ctx))
	if s := c.Stats(); s.Reconnects != 0 {
		t.Errorf("%d reconnects", s.Reconnects)
	}
}

// Every completer is called exactly once, even if the connection is lost.
func TestCompletersAreToldOnce(t *testing.T) {
	testkit.NoLeaks(t)
	sent := make(chan struct{}) // closed after all calls were accepted, because without a connection they are refused
	s := fake(t, func(_ int, args []string) string {
		if args[1] == "50" {
			<-sent
			return hangUp
		}
		return "+OK\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr, Backoff: time.Millisecond})
	const calls = 100
	var told [calls]atomic.Int32
	var all sync.WaitGroup
	for i := range calls {
		all.Add(1)
		err := c.DoFunc(t.Context(), redis.Cmd("ECHO", i), completer(func(_ redis.Reply, err error) {
			told[i].Add(1)
			if i == 50 && slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
				t.Errorf("the call whose connection was closed: %v", err)
			}
			all.Done()
		}))
		if err != nil {
			t.Error(err)
			all.Done()
		}
	}
	close(sent)
	all.Wait()
	for i := range told {
		if n := told[i].Load(); n != 1 {
			t.Errorf("%d: called %d times", i, n)
		}
	}
}
