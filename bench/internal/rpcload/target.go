package rpcload

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"math/rand/v2"
	"runtime"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/proc"
	"github.com/slipstream-go/slipstream/bench/thrift-codec/shapes"
	"github.com/slipstream-go/slipstream/internal/load"
)

// A Work is the job of the callers of a load process, in addition to a [loadproc.Spec].
type Work struct {
	// Size is the size of the text of a note. If 0, callers only sleep, or send messages.
	Size int
	// Message, if not 0, is the approximate size of messages that callers send instead of notes.
	Message int
	// Talk and Watch mean that callers use streams of notes instead of calls: see [Streamer].
	Talk, Watch bool
	// Sleep is the duration of calls of sleep, in milliseconds.
	Sleep int32
	// One call in Sleepers, chosen at random, sleeps. If zero and there is a Size, none does.
	Sleepers int
	// Large means that additional goroutines send notes of [LargeSize] over the same client.
	Large bool
}

// The load of goroutines that send large notes in addition to the callers.
const (
	LargeSize    = 1 << 20
	largeCallers = 2
	largePause   = 40 * time.Millisecond // from the start of one call to the start of the next
)

// Counters of a result. Sleeps are voluntary context switches.
const (
	ClientReads  = "client_reads"
	ServerReads  = "server_reads"
	ClientSleeps = "client_sleeps"
	ServerSleeps = "server_sleeps"
	LargeCalls   = "large_calls"
)

// targets returns the clients of a program, each of which runs in a load process.
func (p Program) targets() loadproc.Targets {
	all := loadproc.Targets{}
	for name, open := range p.Clients {
		all[name] = func(ctx context.Context, s loadproc.Spec) (load.Target, error) {
			t, err := newTarget(ctx, s, open)
			if err != nil {
				return nil, fmt.Errorf("client %s: %w", name, err)
			}
			return t, nil
		}
	}
	return all
}

// A target is a client under load.
type target struct {
	// Immutable after newTarget.
	work   Work
	seed   uint64
	server int // its process; 0 if unknown
	client Client
	closed chan struct{} // closed by Close
	large  sync.WaitGroup

	largeCalls, largeErrors atomic.Int64

	mu sync.Mutex
	// Guarded by mu.
	largeError error // the first one, if any
}

func newTarget(ctx context.Context, s loadproc.Spec, open func(context.Context, Setting) (Client, error)) (*target, error) {
	t := &target{seed: s.Seed, server: s.PID, closed: make(chan struct{})}
	if err := json.Unmarshal(s.Options, &t.work); err != nil {
		return nil, fmt.Errorf("options: %w", err)
	}
	if t.work.Size == 0 && t.work.Sleepers != 0 {
		return nil, errors.New("options: Sleepers needs a Size for the other calls")
	}
	config, err := trust(s.Certificate)
	if err != nil {
		return nil, err
	}
	setting := Setting{Address: s.Address, Callers: s.Callers, TLS: config}
	if t.work.Large {
		setting.Callers += largeCallers
	}
	if t.client, err = open(ctx, setting); err != nil {
		return nil, err
	}
	if t.work.Message > 0 {
		if _, ok := t.client.(Messenger); !ok {
			return nil, errors.Join(errors.New("options: the client does not support messages"), t.client.Close())
		}
	}
	if t.work.Talk || t.work.Watch {
		if _, ok := t.client.(Streamer); !ok {
			return nil, errors.Join(errors.New("options: the client does not support streams"), t.client.Close())
		}
	}
	if t.work.Large {
		for i := range largeCallers {
			// Ended by Close, which waits.
			t.large.Go(func() { t.sendLarge(i) })
		}
	}
	return t, nil
}

// sendLarge sends large notes until the target is closed.
func (t *target) sendLarge(i int) {
	c := &caller{target: t, text: text(i, LargeSize)}
	next := time.NewTicker(largePause)
	defer next.Stop()
	for {
		select {
		case <-next.C:
		case <-t.closed:
			return
		}
		if err := c.echo(); err != nil {
			t.mu.Lock()
			if t.largeError == nil {
				t.largeError = fmt.Errorf("a note of %d bytes: %w", LargeSize, err)
			}
			t.mu.Unlock()
			t.largeErrors.Add(1)
			continue
		}
		t.largeCalls.Add(1)
	}
}

// text returns the text of a caller's notes.
func text(i, size int) string {
	word := fmt.Sprintf("caller %d says so. ", i)
	return strings.Repeat(word, size/len(word)+1)[:size]
}

// NewCaller implements [load.Target].
func (t *target) NewCaller(_ context.Context, i int) (load.Caller, error) {
	switch {
	case t.work.Talk:
		return newTalker(t.client.(Streamer), text(i, t.work.Size))
	case t.work.Watch:
		return newWatcher(t.client.(Streamer), text(i, t.work.Size)), nil
	case t.work.Message > 0:
		m := shapes.Sized(t.work.Message)
		return &messageCaller{message: m, pass: t.client.(Messenger).Pass(m)}, nil
	}
	return &caller{target: t, text: text(i, t.work.Size), rng: rand.New(rand.NewPCG(t.seed, uint64(i)))}, nil
}

// Counters implements [loadproc.Targets].
func (t *target) Counters() []load.Counter {
	all := []load.Counter{{Name: LargeCalls, Read: func(context.Context) (float64, error) { return float64(t.largeCalls.Load()), nil }}}
	if runtime.GOOS != "linux" {
		return all
	}
	count := func(name string, read func(int) (int64, error), pid int) {
		all = append(all, load.Counter{Name: name, Read: func(context.Context) (float64, error) {
			n, err := read(pid)
			return float64(n), err
		}})
	}
	count(ClientReads, proc.Reads, 0)
	count(ClientSleeps, proc.Sleeps, 0)
	if t.server != 0 {
		count(ServerReads, proc.Reads, t.server)
		count(ServerSleeps, proc.Sleeps, t.server)
	}
	return all
}

// Amend implements [loadproc.Targets]: failed calls with large notes are errors, even in the
// warm-up.
func (t *target) Amend(r *load.Result) {
	t.mu.Lock()
	defer t.mu.Unlock()
	r.Errors += uint64(t.largeErrors.Load())
	if t.largeError != nil && r.ErrorSample == "" {
		r.ErrorSample = t.largeError.Error()
	}
}

// Close ends the client.
func (t *target) Close() error {
	close(t.closed)
	t.large.Wait()
	return t.client.Close()
}

// A caller is one goroutine with one call in flight.
type caller struct {
	// Immutable after NewCaller.
	*target
	text string

	// Owned by the goroutine that calls Do.
	rng    *rand.Rand
	number int64
}

// Do implements [load.Caller]. The generator's context is ignored: calls have one that does not
// end, so that only the client itself ends calls.
func (c *caller) Do(context.Context) error {
	if c.work.Size == 0 || c.work.Sleepers != 0 && c.rng.IntN(c.work.Sleepers) == 0 {
		return c.sleep()
	}
	return c.echo()
}

var (
	errText   = errors.New("rpcload: the returned text differs from the one that was sent")
	errNumber = errors.New("rpcload: the returned number differs from the one that was sent")
)

func (c *caller) echo() error {
	c.number++
	text, number, err := c.client.Echo(context.Background(), c.text, c.number)
	if err != nil {
		return err
	}
	return compare(text, number, c.text, c.number)
}

// compare compares a note that was received with the expected one.
func compare(text string, number int64, wantText string, wantNumber int64) error {
	switch {
	case number != wantNumber:
		return errNumber
	case text != wantText:
		return errText
	}
	return nil
}

func (c *caller) sleep() error {
	slept, err := c.client.Sleep(context.Background(), c.work.Sleep)
	if err == nil && slept != c.work.Sleep {
		err = errNumber
	}
	return err
}

// Close implements [load.Caller]: the client is closed once, by the target.
func (c *caller) Close() error { return nil }

// A messageCaller is a caller that sends messages.
type messageCaller struct {
	// Immutable after NewCaller.
	message *shapes.Message
	pass    func(ctx context.Context, key int64) (Passed, error)

	key int64 // owned by the goroutine that calls Do
}

// Do implements [load.Caller].
func (c *messageCaller) Do(context.Context) error {
	c.key++
	got, err := c.pass(context.Background(), c.key)
	if want := PassedOf(c.message, c.key); err == nil && got != want {
		err = fmt.Errorf("rpcload: a message was returned with %+v, want %+v", got, want)
	}
	return err
}

// Close implements [load.Caller].
func (*messageCaller) Close() error { return nil }
