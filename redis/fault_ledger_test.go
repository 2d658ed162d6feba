//go:build unix

package redis_test

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"
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

// A ledger checks every reply that a client gets while links and servers fail. Each value contains
// its key, so a reply that reached the wrong caller is detected, and so are calls that end twice or
// never.
type ledger struct {
	// Immutable.
	client *redis.Client
	fixed  []fixedKey
	// volatile means that the server may have lost keys.
	volatile bool
	// cancels is the longest time after which contexts end at random; if 0, they never do.
	cancels time.Duration
	// rest is how long a worker waits after a call that failed without being
	// sent, so that it does not fail a hundred thousand times a second.
	rest time.Duration
	// lone means that a worker has one call in flight at a time, and waits for it.
	lone bool

	// Atomics, written by workers and completers.
	good, failed atomic.Int64
	outcomes     [slipstream.Executed + 1]atomic.Int64
	begun, ended atomic.Int64 // calls of DoFunc
	workers      atomic.Int64 // number of workers

	mu       sync.Mutex
	problems []string // guarded by mu
}

// fixedKey is a key whose value never changes.
type fixedKey struct {
	name string
	size int
}

// text returns the value of a key: its name and seq, repeated, so that every part of the value says
// where it belongs.
func text(key string, seq, size int) string {
	mark := key + "#" + strconv.Itoa(seq) + ";"
	return strings.Repeat(mark, size/len(mark)+1)[:max(size, len(mark))]
}

// newLedger stores one fixed key for each size through a connection without
// faults.
func newLedger(t testing.TB, direct string, client *redis.Client, sizes ...int) *ledger {
	t.Helper()
	l := &ledger{client: client}
	c := connect(t, redis.Options{Addr: direct})
	for i, size := range sizes {
		k := fixedKey{fmt.Sprintf("fixed:%d", i), size}
		must(t, c.Set(t.Context(), k.name, text(k.name, 0, size)))
		l.fixed = append(l.fixed, k)
	}
	return l
}

func (l *ledger) problem(format string, args ...any) {
	l.mu.Lock()
	defer l.mu.Unlock()
	if len(l.problems) < 20 {
		l.problems = append(l.problems, fmt.Sprintf(format, args...))
	}
}

// run lets workers make calls until stop returns true, waits for every call, and fails the test if
// anything was wrong.
func (l *ledger) run(t testing.TB, seed uint64, workers int, stop func() bool) {
	t.Helper()
	l.start(t, seed, workers, stop)()
}

// start lets workers make calls until stop returns true. The returned function waits for every call
// and fails the test if anything was wrong.
func (l *ledger) start(t testing.TB, seed uint64, workers int, stop func() bool) (wait func()) {
	t.Helper()
	ctx, cancel := context.WithTimeout(context.Background(), 2*time.Minute+testkit.SoakTime(t, time.Second))
	var all sync.WaitGroup
	for i := range workers {
		id := fmt.Sprintf("%s:%d", t.Name(), l.workers.Add(1))
		w := &worker{l: l, id: id, r: testkit.Fork(seed, uint64(i)+1000), maybe: make(map[int]bool)}
		all.Go(func() {
			// The test is meaningless unless a call was answered, which may take longer on a slow
			// machine.
			for (!stop() || l.good.Load() == 0) && ctx.Err() == nil {
				w.step(ctx)
			}
		})
	}
	return func() {
		t.Helper()
		all.Wait()
		if ctx.Err() != nil {
			t.Error("the test did not finish in time")
		}
		cancel()
		l.settled(t)
	}
}

// settled checks that every call has ended exactly once, and that the client holds nothing for
// calls that have ended.
func (l *ledger) settled(t testing.TB) {
	t.Helper()
	testkit.Eventually(t, 30*time.Second, func() error {
		if begun, ended := l.begun.Load(), l.ended.Load(); begun != ended {
			return fmt.Errorf("%d completers were called for %d calls", ended, begun)
		}
		s := l.client.Stats()
		if s.Queued+s.Outstanding != 0 || s.HeldBytes != 0 {
			return fmt.Errorf("%d queued, %d in flight, %d bytes held", s.Queued, s.Outstanding, s.HeldBytes)
		}
		return nil
	})
	s := l.client.Stats()
	if s.Backstop != 0 {
		t.Errorf("%d writes were left to the backstop", s.Backstop)
	}
	if s.CompleterPanics+s.HookPanics != 0 {
		t.Errorf("%d completers and %d hooks panicked", s.CompleterPanics, s.HookPanics)
	}
	var outcomes []string
	for o := range l.outcomes {
		if n := l.outcomes[o].Load(); n > 0 {
			outcomes = append(outcomes, fmt.Sprintf("%d %v", n, slipstream.Outcome(o)))
		}
	}
	t.Logf("%d calls were answered, %d failed (%s); %d connections ended, %d calls retried, %d replies read by their callers",
		l.good.Load(), l.failed.Load(), strings.Join(outcomes, ", "), s.Reconnects, s.Repeated, s.SoloReplies)
	l.mu.Lock()
	defer l.mu.Unlock()
	for _, p := range l.problems {
		t.Error(p)
	}
	if l.good.Load() == 0 {
		t.Error("no call was answered")
	}
}

// judge records the end of a call. It reports whether there is a reply and, if there is none,
// whether the server may have executed the command.
func (l *ledger) judge(op string, err error) (ok, maybe bool) {
	if err == nil {
		l.good.Add(1)
		return true, false
	}
	l.failed.Add(1)
	var e *slipstream.Error
	if !errors.As(err, &e) || e.Op == "" || e.Err == nil {
		l.problem("%s: error %T %v, expected a whole *slipstream.Error", op, err, err)
		return false, true
	}
	l.outcomes[e.Outcome].Add(1)
	var server *redis.ServerError
	switch {
	case errors.As(err, &server):
		if e.Outcome != slipstream.Refused {
			l.problem("%s: %v", op, err)
		}
	case e.Outcome == slipstream.Executed || strings.Contains(err.Error(), "protocol"):
		// The server is honest, so a reply of the wrong kind belongs to another call.
		l.problem("%s: %v", op, err)
	}
	if e.Outcome == slipstream.NotSent || e.Outcome == slipstream.Overloaded {
		time.Sleep(l.rest)
	}
	return false, e.Outcome == slipstream.MaybeExecuted
}

// A worker makes calls one after another, or a few at a time.
type worker struct {
	// Immutable.
	l  *ledger
	id string // unique among the workers of all tests

	// Owned by the worker's goroutine.
	r         *rand.Rand
	buf       []byte
	tokens    int
	seq       int // sequence number of the last value for the worker's own key
	confirmed int
	maybe     map[int]bool // values that the key may have, or may get late
}

// step makes a few calls of one kind.
func (w *worker) step(ctx context.Context) {
	if d := w.l.cancels; d > 0 && w.r.IntN(2) == 0 {
		var cancel context.CancelFunc
		wait := time.Duration(w.r.Int64N(int64(d)))
		if w.r.IntN(2) == 0 {
			ctx, cancel = context.WithTimeout(ctx, wait)
		} else {
			ctx, cancel = context.WithCancel(ctx)
			defer time.AfterFunc(wait, cancel).Stop()
		}
		defer cancel()
	}
	switch w.r.IntN(8) {
	case 0, 1:
		w.typedGet(ctx)
	case 2:
		w.typedMGet(ctx)
	case 3:
		w.register(ctx)
	default:
		w.several(ctx, 1+w.r.IntN(8))
	}
}

func (w *worker) typedGet(ctx context.Context) {
	k := w.l.fixed[w.r.IntN(len(w.l.fixed))]
	var got string
	var found bool
	var err error
	if w.r.IntN(2) == 0 {
		got, found, err = w.l.client.Get(ctx, k.name)
	} else {
		w.buf = append(w.buf[:0], "head"...)
		w.buf, found, err = w.l.client.GetAppend(ctx, w.buf, k.name)
		if !bytes.HasPrefix(w.buf, []byte("head")) {
			w.l.problem("GET %s: the previous contents of the buffer are gone", k.name)
		}
		got = string(w.buf[4:])
	}
	if ok, _ := w.l.judge("GET", err); ok {
		w.check(k, got, found)
	}
}

// check compares the value of a fixed key.
func (w *worker) check(k fixedKey, got string, found bool) {
	switch {
	case !found:
		if !w.l.volatile {
			w.l.problem("%s is missing", k.name)
		}
	case got != text(k.name, 0, k.size):
		w.l.problem("%s: %d bytes that start with %.60q", k.name, len(got), got)
	}
}

func (w *worker) typedMGet(ctx context.Context) {
	var keys []fixedKey
	var names []string
	for range 1 + w.r.IntN(4) {
		k := w.l.fixed[w.r.IntN(len(w.l.fixed))]
		keys, names = append(keys, k), append(names, k.name)
	}
	out, spans, err := w.l.client.MGetAppend(ctx, w.buf[:0], nil, names...)
	if ok, _ := w.l.judge("MGET", err); ok {
		for i, s := range spans {
			w.check(keys[i], string(s.In(out)), s.Found())
		}
	}
}

// register writes the worker's own key and reads it back.
func (w *worker) register(ctx context.Context) {
	key := "own:" + w.id
	w.seq++
	ok, maybe := w.l.judge("SET", w.l.client.Set(ctx, key, text(key, w.seq, 20+w.r.IntN(200))))
	if ok {
		w.confirmed = w.seq
	} else if maybe {
		w.maybe[w.seq] = true
	}
	got, found, err := w.l.client.Get(ctx, key)
	if ok, _ := w.l.judge("GET", err); !ok {
		return
	}
	if !found {
		if w.confirmed > 0 && !w.l.volatile {
			w.l.problem("%s is missing, but %d was confirmed", key, w.confirmed)
		}
		return
	}
	var seq int
	if _, err := fmt.Sscanf(got, key+"#%d;", &seq); err != nil || got != text(key, seq, len(got)) {
		w.l.problem("%s: %.60q", key, got)
	} else if seq != w.confirmed && !w.maybe[seq] {
		w.l.problem("%s has value %d, which was not sent or was overwritten by %d", key, seq, w.confirmed)
	}
}

// question is a command and the reply that it must get.
type question struct {
	cmd   redis.Command
	check func(redis.Value)
}

func (w *worker) question() question {
	if w.r.IntN(3) == 0 {
		k := w.l.fixed[w.r.IntN(len(w.l.fixed))]
		return question{redis.Cmd("GET", k.name), func(v redis.Value) { w.check(k, v.Text, v.Kind != redis.Null) }}
	}
	w.tokens++
	token := text("token:"+w.id, w.tokens, w.r.IntN(100))
	return question{redis.Cmd("ECHO", token), func(v redis.Value) {
		if v.Text != token {
			w.l.problem("ECHO %.60q: %v %.60q", token, v.Kind, v.Text)
		}
	}}
}

// several makes n calls at a time in one of several ways.
func (w *worker) several(ctx context.Context, n int) {
	qs := make([]question, n)
	cmds := make([]redis.Command, n)
	for i := range qs {
		qs[i] = w.question()
		cmds[i] = qs[i].cmd
	}
	values, errs := w.ask(ctx, cmds)
	for i, q := range qs {
		if ok, _ := w.l.judge(q.cmd.Name(), errs[i]); ok {
			q.check(values[i])
		}
	}
}

// ask makes calls in one of several ways and waits for all of them.
func (w *worker) ask(ctx context.Context, cmds []redis.Command) ([]redis.Value, []error) {
	c := w.l.client
	values, errs := make([]redis.Value, len(cmds)), make([]error, len(cmds))
	style := w.r.IntN(5)
	if w.l.lone {
		style = 0
	}
	switch style {
	case 0:
		for i, cmd := range cmds {
			errs[i] = c.Do(ctx, &values[i], cmd)
		}
	case 1:
		futures := make([]redis.Future, len(cmds))
		for i, cmd := range cmds {
			futures[i] = c.Start(ctx, cmd)
		}
		for _, i := range w.r.Perm(len(cmds)) {
			errs[i] = futures[i].Wait(&values[i])
			if err := futures[i].Wait(&values[i]); !errors.Is(err, redis.ErrReleased) {
				w.l.problem("a future was waited for twice: %v", err)
			}
		}
	case 2:
		var done sync.WaitGroup
		for i, cmd := range cmds {
			done.Add(1)
			e := &entry{l: w.l, value: &values[i], err: &errs[i], done: &done}
			w.l.begun.Add(1)
			if err := c.DoFunc(ctx, cmd, e); err != nil {
				errs[i] = err
				e.once.Add(1) // no further call is expected
				w.l.ended.Add(1)
				done.Done()
			}
		}
		done.Wait()
	case 3:
		var b redis.Batch
		for i, cmd := range cmds {
			b.Add(&values[i], cmd)
		}
		err := c.DoBatch(ctx, &b)
		for i := range cmds {
			errs[i] = b.Err(i)
		}
		w.checkBatch("DoBatch", err, errs)
	case 4:
		dsts := make([]any, len(cmds))
		for i := range dsts {
			dsts[i] = &values[i]
		}
		w.many(ctx, cmds, dsts, errs)
	}
	return values, errs
}

// many uses DoMany, whose error is only that of the first command that failed. If there is one, the
// commands whose result is unknown count as failed, too.
func (w *worker) many(ctx context.Context, cmds []redis.Command, dsts []any, errs []error) {
	err := w.l.client.DoMany(ctx, cmds, dsts)
	if err == nil {
		return
	}
	var e *redis.BatchError
	if !errors.As(err, &e) || e.Failed < 1 {
		w.l.problem("DoMany: %v", err)
		return
	}
	for i := e.Index; i < len(errs); i++ {
		errs[i] = e.Err
	}
}

// checkBatch compares the error of a batch with the errors of its commands.
func (w *worker) checkBatch(op string, err error, errs []error) {
	first, failed := -1, 0
	for i, e := range errs {
		if e != nil {
			failed++
			if first < 0 {
				first = i
			}
		}
	}
	var e *redis.BatchError
	switch {
	case failed == 0 && err == nil:
	case !errors.As(err, &e) || e.Failed != failed:
		w.l.problem("%s: %v, %d commands failed", op, err, failed)
	}
}

// entry is the completer of one call.
type entry struct {
	l     *ledger
	value *redis.Value
	err   *error
	done  *sync.WaitGroup
	once  atomic.Int32
}

// Complete implements redis.Completer.
func (e *entry) Complete(reply redis.Reply, err error) {
	if n := e.once.Add(1); n != 1 {
		e.l.problem("a completer was called %d times", n)
		return
	}
	if err == nil {
		err = reply.Decode(e.value)
	}
	*e.err = err
	e.l.ended.Add(1)
	e.done.Done()
}
