package redis_test

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/testkit"
	"github.com/slipstream-go/slipstream/redis"
)

// The three ways to add a command have the same result.
func TestWaysToAddACommand(t *testing.T) {
	s := fake(t, func(_ int, args []string) string {
		return "$" + fmt.Sprint(len(args)) + "\r\n" + strings.Repeat("x", len(args)) + "\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr})
	var b redis.Batch
	commands := [][]string{
		{"GET", "a"}, {"GET", "b"}, {"get", "c"}, {"MGET", "a", "b"}, {"DBSIZE"}, {"CLIENT", "LIST"}, {"CLIENT", "ID"},
		{"GET", strings.Repeat("long", 50_000)}, {"GET", ""}, {"OBJECT", "ENCODING", "k"}, {"OBJECT", "FREQ", "k"},
	}
	for round := range 3 { // the memory of the batch is reused
		b.Reset()
		got := make([]string, 0, 3*len(commands))
		into := func() any { got = append(got, ""); return &got[len(got)-1] }
		for _, words := range commands {
			args := make([]any, len(words)-1)
			for i, w := range words[1:] {
				args[i] = w
			}
			b.Add(into(), redis.Cmd(words[0], args...))
			b.AddCmd(into(), words[0], args...)
			b.AddStrings(into(), words[0], words[1:]...)
		}
		before := len(s.seen())
		must(t, c.DoBatch(t.Context(), &b))
		for i, sent := range s.seen()[before:] {
			if want := strings.Join(commands[i/3], " "); sent != want {
				t.Fatalf("round %d, way %d: %.50q, want %.50q", round, i%3, sent, want)
			}
			if want := len(commands[i/3]); len(got[i]) != want {
				t.Errorf("round %d: the reply to %.50q is %q", round, sent, got[i])
			}
		}
	}
	// Errors of a command are detected however it was added.
	for name, add := range map[string]func(){
		"AddCmd":        func() { b.AddCmd(nil, "BLPOP", "k", 0) },
		"AddStrings":    func() { b.AddStrings(nil, "BLPOP", "k", "0") },
		"after another": func() { b.AddStrings(nil, "CLIENT", "NEW"); b.AddStrings(nil, "CLIENT", "REPLY", "OFF") },
	} {
		b.Reset()
		add()
		if err := c.DoBatch(t.Context(), &b); !errors.Is(err, redis.ErrShared) {
			t.Errorf("%s: %v", name, err)
		}
	}
	b.Reset()
	b.AddCmd(nil, "GET", "a")
	b.AddCmd(nil, "GET", struct{}{})
	b.AddCmd(nil, "GET", "b")
	var e *redis.BatchError
	if err := c.DoBatch(t.Context(), &b); !errors.As(err, &e) || e.Index != 1 || !strings.Contains(err.Error(), "argument 1") {
		t.Errorf("%v", err)
	}
}

// A batch of many parts, some of whose replies are large: each reply finds its command.
func TestPartsOfABatch(t *testing.T) {
	c := start(t)
	large := strings.Repeat("large", 30_000)
	var b redis.Batch
	const n = 5000
	got := make([]string, n)
	want := make([]string, n)
	for i := range n {
		want[i] = fmt.Sprint("value ", i)
		if i%700 == 3 {
			want[i] = large + want[i]
		}
		b.AddStrings(&got[i], "ECHO", want[i])
	}
	must(t, c.DoBatch(t.Context(), &b))
	for i := range n {
		if got[i] != want[i] {
			t.Fatalf("%d: %.40q, want %.40q", i, got[i], want[i])
		}
	}
}

// The replies that arrived before the connection was lost count: their commands were executed, and
// the others may have been.
func TestBatchThatIsCutOff(t *testing.T) {
	testkit.NoLeaks(t)
	asked := 0
	s := fake(t, func(_ int, args []string) string {
		if asked++; asked == 4 {
			return hangUp
		}
		return "+" + args[1] + "\r\n"
	})
	c := connect(t, redis.Options{Addr: s.Addr})
	var b redis.Batch
	got := make([]string, 6)
	for i := range got {
		b.AddCmd(&got[i], "ECHO", i)
	}
	err := c.DoBatch(t.Context(), &b)
	var e *redis.BatchError
	if !errors.As(err, &e) || slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Fatal(err)
	}
	for i := range got {
		switch err := b.Err(i); {
		case i >= 3 && slipstream.OutcomeOf(err) != slipstream.MaybeExecuted:
			t.Errorf("%d: %v", i, err)
		case i < e.Index && (err != nil || got[i] != fmt.Sprint(i)):
			t.Errorf("%d: %q, %v", i, got[i], err)
		case i >= e.Index && err == nil:
			t.Errorf("%d has no error, and the first that failed is %d", i, e.Index)
		}
	}
	if e.Index > 3 || e.Failed != 6-e.Index {
		t.Errorf("%+v", e)
	}
}

// Commands that the kernel had not taken when the connection was lost were not sent.
func TestBatchThatDoesNotFit(t *testing.T) {
	testkit.NoLeaks(t)
	hold := make(chan struct{})
	s := fake(t, func(int, []string) string {
		<-hold
		return hangUp
	})
	c := connect(t, redis.Options{Addr: s.Addr, FailFast: true, StallTimeout: time.Minute, MaxBytes: 1 << 30})
	var b redis.Batch
	value := strings.Repeat("v", 1000)
	const n = 60_000
	for i := range n {
		b.AddCmd(nil, "SET", i, value)
	}
	done := make(chan error, 1)
	go func() { done <- c.DoBatch(context.Background(), &b) }()
	testkit.Eventually(t, 10*time.Second, func() error {
		if s := c.Stats(); s.BytesOut < 100_000 {
			return fmt.Errorf("%d bytes sent", s.BytesOut)
		}
		return nil
	})
	s.HangUp()
	close(hold)
	if err := <-done; slipstream.OutcomeOf(err) != slipstream.MaybeExecuted {
		t.Fatal(err)
	}
	turn := 0
	for turn < n && slipstream.OutcomeOf(b.Err(turn)) == slipstream.MaybeExecuted {
		turn++
	}
	sent := c.Stats().BytesOut
	if turn == 0 || turn == n || sent == 0 {
		t.Fatalf("%d of %d may have been executed, %d bytes", turn, n, sent)
	}
	for i := turn; i < n; i++ {
		if slipstream.OutcomeOf(b.Err(i)) != slipstream.NotSent {
			t.Fatalf("%d: %v after %d that may have been executed", i, b.Err(i), turn)
		}
	}
	// The boundary is exact to the byte: the first command that is not in doubt starts where the
	// sent bytes end, or later.
	begins, first := uint64(0), 0
	for begins < sent && first < n {
		key := fmt.Sprint(first)
		begins += uint64(len(fmt.Sprintf("*3\r\n$3\r\nSET\r\n$%d\r\n%s\r\n$1000\r\n\r\n", len(key), key)) + 1000)
		first++
	}
	if turn != first {
		t.Errorf("%d bytes sent: %d commands in doubt, want %d", sent, turn, first)
	}
}

// Batches of all sizes run concurrently with single calls, with pooled memory: each reply belongs
// to its caller. Memory that two calls share by mistake is detected within a second.
func TestBatchesShareNoMemory(t *testing.T) {
	c := start(t)
	seed := testkit.Seed(t)
	var all sync.WaitGroup
	for g := range 16 {
		all.Go(func() {
			rng := testkit.Fork(seed, uint64(g))
			var b redis.Batch
			got := make([]string, 80)
			for round := range 150 {
				b.Reset()
				n := 1 + rng.IntN(len(got))
				if round%2 == 0 {
					n = 1 + rng.IntN(4)
				}
				pad := strings.Repeat(string(rune('a'+g)), rng.IntN(120))
				want := func(i int) string { return fmt.Sprint(g, "/", round, "/", i, "/", pad) }
				for i := range n {
					b.AddStrings(&got[i], "ECHO", want(i))
				}
				if err := c.DoBatch(t.Context(), &b); err != nil {
					t.Error(err)
					return
				}
				for i := range n {
					if got[i] != want(i) {
						t.Errorf("%q, want %q", got[i], want(i))
						return
					}
				}
				var one string
				if err := c.Do(t.Context(), &one, redis.Cmd("ECHO", want(-1))); err != nil || one != want(-1) {
					t.Errorf("%q, want %q: %v", one, want(-1), err)
					return
				}
			}
		})
	}
	all.Wait()
}
