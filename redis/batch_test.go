package redis_test

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"sync"
	"sync/atomic"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

func TestBatches(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	var b redis.Batch
	var ok, value string
	var n int
	var list []string
	b.Add(&ok, redis.Cmd("SET", "k", "v"))
	b.Add(&n, redis.Cmd("INCR", "n"))
	b.Add(&value, redis.Cmd("GET", "k"))
	b.Add(nil, redis.Cmd("RPUSH", "list", "a", "b"))
	b.Add(&list, redis.Cmd("LRANGE", "list", 0, -1))
	for round := 1; round <= 2; round++ { // a batch may be sent again
		if err := c.DoBatch(ctx, &b); err != nil || ok != "OK" || n != round || value != "v" || len(list) != 2*round {
			t.Errorf("%q %d %q %q: %v", ok, n, value, list, err)
		}
	}
	for i := range b.Len() {
		if b.Err(i) != nil {
			t.Errorf("%d: %v", i, b.Err(i))
		}
	}
	b.Reset()
	if err := c.DoBatch(ctx, &b); b.Len() != 0 || err != nil {
		t.Errorf("an empty batch: %v", err)
	}
}

func TestErrorsOfBatches(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	var b redis.Batch
	var n int
	b.Add(nil, redis.Cmd("SET", "k", "text"))
	b.Add(nil, redis.Cmd("INCR", "k"))
	b.Add(&n, redis.Cmd("GET", "k"))
	b.Add(nil, redis.Cmd("SET", "after", "done"))
	err := c.DoBatch(ctx, &b)
	var e *redis.BatchError
	var server *redis.ServerError
	if !errors.As(err, &e) || e.Index != 1 || e.Failed != 2 || !errors.As(err, &server) || slipstream.OutcomeOf(err) != slipstream.Executed || !strings.Contains(err.Error(), "command 1 (2 failed): INCR") {
		t.Errorf("%v", err)
	}
	for i, want := range []string{"", "INCR", "GET", ""} {
		if err := b.Err(i); (err == nil) != (want == "") || err != nil && !strings.Contains(err.Error(), want) {
			t.Errorf("%d: %v", i, err)
		}
	}
	if v, _, err := c.Get(ctx, "after"); v != "done" || err != nil {
		t.Errorf("a command after one that failed: %q, %v", v, err)
	}
	// If one command cannot be sent, the others are not sent either.
	b.Reset()
	b.Add(nil, redis.Cmd("SET", "never", "x"))
	b.Add(nil, redis.Cmd("BLPOP", "k", 0))
	err = c.DoBatch(ctx, &b)
	if !errors.As(err, &e) || e.Index != 1 || !errors.Is(err, redis.ErrShared) || slipstream.OutcomeOf(b.Err(0)) != slipstream.NotSent || !errors.Is(b.Err(1), redis.ErrShared) {
		t.Errorf("%v; %v; %v", err, b.Err(0), b.Err(1))
	}
	if n, err := c.Exists(ctx, "never"); n != 0 || err != nil {
		t.Errorf("%d, %v", n, err)
	}
}

// The commands of a batch are contiguous: no command of another caller comes between
// them.
func TestBatchesAreContiguous(t *testing.T) {
	testkit.NoLeaks(t)
	s := fake(t, func(int, []string) string { return "+OK\r\n" })
	c := connect(t, redis.Options{Addr: s.Addr})
	var all sync.WaitGroup
	for i := range 8 {
		all.Go(func() {
			for range 50 {
				var b redis.Batch
				for j := range 5 {
					b.Add(nil, redis.Cmd("SET", i, j))
				}
				if err := c.DoBatch(t.Context(), &b); err != nil {
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	sent := s.seen()
	if len(sent) != 8*50*5 {
		t.Fatalf("%d commands", len(sent))
	}
	for i := 0; i < len(sent); i += 5 {
		owner := strings.Fields(sent[i])[1]
		for j, cmd := range sent[i : i+5] {
			if want := fmt.Sprintf("SET %s %d", owner, j); cmd != want {
				t.Fatalf("%d: %q, want %q", i+j, cmd, want)
			}
		}
	}
}

func TestMany(t *testing.T) {
	c := start(t, func(o *redis.Options) { o.MaxCalls = 100 })
	ctx := t.Context()
	const calls = 1000 // more than the bound allows
	cmds, dsts, got := make([]redis.Command, calls), make([]any, calls), make([]int, calls)
	for i := range cmds {
		cmds[i], dsts[i] = redis.Cmd("ECHO", i), &got[i]
	}
	must(t, c.DoMany(ctx, cmds, dsts))
	for i, n := range got {
		if n != i {
			t.Fatalf("%d: %d", i, n)
		}
	}
	must(t, c.DoMany(ctx, cmds, nil))
	must(t, c.DoMany(ctx, nil, nil))
	cmds[70], cmds[900] = redis.Cmd("NOSUCH"), redis.Cmd("NOSUCH")
	var e *redis.BatchError
	if err := c.DoMany(ctx, cmds, dsts); !errors.As(err, &e) || e.Index != 70 || e.Failed != 2 {
		t.Errorf("%v", err)
	}
	if err := c.DoMany(ctx, cmds, dsts[1:]); slipstream.OutcomeOf(err) != slipstream.NotSent {
		t.Errorf("%v", err)
	}
}

// A batch is sent again only if no part of it was sent.
func TestRepetitionOfBatches(t *testing.T) {
	testkit.NoLeaks(t)
	var mode atomic.Int32 // if 0, hang up at the first command of a batch
	s := fake(t, func(_ int, args []string) string {
		if mode.Load() == 0 {
			return hangUp
		}
		return ":1\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr, Backoff: time.Millisecond})
	var b redis.Batch
	b.Add(nil, redis.Cmd("GET", "a"))
	b.Add(nil, redis.Cmd("INCR", "b"))
	err := c.DoBatch(t.Context(), &b)
	if slipstream.OutcomeOf(err) != slipstream.MaybeExecuted || slipstream.OutcomeOf(b.Err(1)) != slipstream.MaybeExecuted {
		t.Errorf("%v; %v", err, b.Err(1))
	}
	if n := len(s.seen()); n != 1 || c.Stats().Repeated != 0 {
		t.Errorf("%d commands seen, %d repeated", n, c.Stats().Repeated)
	}
	mode.Store(1)
	must(t, c.DoBatch(t.Context(), &b))
	ctx, cancel := context.WithCancel(t.Context())
	cancel()
	if err := c.DoBatch(ctx, &b); slipstream.OutcomeOf(err) != slipstream.NotSent || !errors.Is(err, context.Canceled) {
		t.Errorf("%v", err)
	}
}

// Commands are shared by many goroutines, and large ones lend their memory to the calls: they must
// not change.
func TestCommandsAreImmutable(t *testing.T) {
	c := start(t)
	ctx := t.Context()
	sizes := []int{10, 900, 1100, 4000, 4096, 5000, 20_000, 100_000}
	var cmds []redis.Command
	for i, n := range sizes {
		cmds = append(cmds, redis.Cmd("ECHO", slices.Repeat([]byte{'a' + byte(i)}, n)))
	}
	var all sync.WaitGroup
	for g := range 8 {
		all.Go(func() {
			var got []byte
			for round := range 60 {
				i := (g + round) % len(cmds)
				one, cancel := ctx, context.CancelFunc(func() {})
				if round%5 == 0 { // some calls are abandoned while in flight
					one, cancel = context.WithTimeout(ctx, time.Duration(round)*10*time.Microsecond)
				}
				err := c.Do(one, &got, cmds[i])
				cancel()
				if round%5 == 0 && err != nil {
					continue
				}
				if err != nil || len(got) != sizes[i] || got[0] != 'a'+byte(i) || got[len(got)-1] != 'a'+byte(i) {
					t.Errorf("%d bytes: %d, %v", sizes[i], len(got), err)
				}
				if err := c.Set(ctx, "k", strings.Repeat("z", round*20)); err != nil { // reuses the memory of the calls
					t.Error(err)
				}
			}
		})
	}
	all.Wait()
	if n := c.Stats().Reconnects; n != 0 {
		t.Errorf("%d reconnects", n)
	}
}
