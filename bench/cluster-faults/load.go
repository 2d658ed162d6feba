package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"regexp"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/bench/internal/redisload"
	"github.com/slipstream-go/slipstream/internal/load"
)

// work is the job of a load process, in addition to a [loadproc.Spec].
type work struct {
	Seeds    []string
	Ledger   string        // file that is written at the end
	Started  string        // file that is created with the first call
	Deadline time.Duration // of each call
}

// returnLimit is how long calls may take to return after their contexts have ended.
const returnLimit = 5 * time.Second

// mostTexts bounds the number of error texts that are kept.
const mostTexts = 30

// targets are the clients of clusters, each of which runs in the load process.
func targets() loadproc.Targets {
	all := loadproc.Targets{}
	for _, k := range redisload.Kinds() {
		if k.Clustered() {
			all[k.Name] = func(ctx context.Context, s loadproc.Spec) (load.Target, error) { return openTarget(ctx, k, s) }
		}
	}
	return all
}

// A target is a client under load.
type target struct {
	// Immutable after openTarget.
	work    work
	client  redisload.Client
	callers []*caller // each written by its NewCaller
	ctx     context.Context
	cancel  context.CancelFunc // ends the calls that are in flight at the end
	started func() error

	written sync.Once
	failure error       // of writing the ledger; written by it, read by Close
	late    *time.Timer // writes the ledger if calls do not return; set by stop
	stopped sync.Once

	// Guarded by mu.
	mu    sync.Mutex
	texts map[string]int

	ending atomic.Bool // calls that fail from now on were cut off
}

func openTarget(ctx context.Context, k redisload.Kind, s loadproc.Spec) (load.Target, error) {
	t := &target{callers: make([]*caller, s.Callers), texts: map[string]int{}}
	if err := json.Unmarshal(s.Options, &t.work); err != nil {
		return nil, fmt.Errorf("options of %s: %w", k.Name, err)
	}
	redisload.SilenceLogs()
	var err error
	if t.client, err = k.Open(ctx, redisload.Setting{Cluster: t.work.Seeds, Callers: s.Callers}); err != nil {
		return nil, fmt.Errorf("open %s: %w", k.Name, err)
	}
	if _, ok := t.client.(redisload.Pusher); !ok {
		return nil, errors.Join(fmt.Errorf("%s cannot push", k.Name), t.client.Close())
	}
	t.ctx, t.cancel = context.WithCancel(context.Background()) // ended by stop
	t.started = sync.OnceValue(func() error { return os.WriteFile(t.work.Started, nil, 0o644) })
	return t, nil
}

// NewCaller implements [load.Target]. The value that the caller reads is stored before the load.
func (t *target) NewCaller(ctx context.Context, i int) (load.Caller, error) {
	c := &caller{target: t, pusher: t.client.(redisload.Pusher), index: i, list: listKey(i), key: valueKey(i), value: valueOf(i), dst: make([]byte, 0, 128)}
	t.callers[i] = c
	return c, t.client.Set(ctx, c.key, c.value)
}

// stop ends the calls in flight. Those that do not return are counted.
func (t *target) stop() {
	t.stopped.Do(func() {
		t.ending.Store(true)
		t.cancel()
		// Stopped by Close, if all calls return.
		t.late = time.AfterFunc(returnLimit, t.writeLedger)
	})
}

// writeLedger writes what has been recorded so far.
func (t *target) writeLedger() {
	t.written.Do(func() {
		l := &ledger{Errors: t.texts}
		for _, c := range t.callers {
			if c == nil {
				continue
			}
			c.mu.Lock()
			l.Ops = append(l.Ops, c.ops...)
			if c.calling {
				l.Unresolved++
			}
			c.mu.Unlock()
		}
		t.mu.Lock()
		defer t.mu.Unlock()
		t.failure = l.write(t.work.Ledger)
	})
}

// Close writes the ledger and closes the client. The load process is killed if that takes too long.
func (t *target) Close() error {
	t.stop()
	t.late.Stop()
	t.writeLedger()
	return errors.Join(t.failure, t.client.Close())
}

// note counts an error by its text.
func (t *target) note(err error) {
	text := figures.ReplaceAllString(err.Error(), "N")
	t.mu.Lock()
	defer t.mu.Unlock()
	if _, known := t.texts[text]; !known && len(t.texts) == mostTexts {
		text = "others"
	}
	t.texts[text]++
}

var figures = regexp.MustCompile(`[0-9]+(\.[0-9]+)*`)

// A caller alternates between pushes and reads, of keys of one slot. Therefore callers on shards
// other than the failing one continue at their rate.
type caller struct {
	// Immutable after NewCaller.
	target           *target
	pusher           redisload.Pusher
	index            int
	list, key, value string

	// Owned by the goroutine that calls Do.
	dst  []byte
	seq  int
	read bool // the next call is a GET

	// Guarded by mu.
	mu      sync.Mutex
	ops     []op
	calling bool
}

// Do implements [load.Caller]. It fails only if the run itself has failed, so that the generator does
// not slow down after errors.
func (c *caller) Do(context.Context) error {
	if err := c.target.started(); err != nil {
		return err
	}
	o := op{Caller: int32(c.index)}
	if !c.read {
		c.seq++
		o.Seq = int32(c.seq)
	}
	c.read = !c.read
	c.mu.Lock()
	c.calling = true
	c.mu.Unlock()
	ctx, cancel := context.WithTimeout(c.target.ctx, c.target.work.Deadline)
	began := time.Now()
	var err error
	if o.Seq > 0 {
		err = c.pusher.Push(ctx, c.list, strconv.Itoa(c.seq))
	} else {
		var value []byte
		if value, err = c.target.client.Get(ctx, c.dst[:0], c.key); err == nil && string(value) != c.value {
			o.Fate = wrong
		}
	}
	o.Sent, o.Took = began.UnixNano(), time.Since(began)
	cancel()
	if err != nil {
		o.Fate = c.target.fateOf(err)
	}
	c.mu.Lock()
	c.ops = append(c.ops, o)
	c.calling = false
	c.mu.Unlock()
	return nil
}

// fateOf returns the outcome of a failed call.
func (t *target) fateOf(err error) fate {
	of := redisload.FateOf(err)
	switch {
	case of == redisload.Missing:
		return missing
	case t.ending.Load():
		return cut
	}
	t.note(err)
	switch of {
	case redisload.NotSent:
		return notSent
	case redisload.Answered:
		return answered
	}
	return unknown
}

// Close implements [load.Caller]: the load has ended, or must end.
func (c *caller) Close() error {
	c.target.stop()
	return nil
}
