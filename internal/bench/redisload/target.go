package redisload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/redis"
)

// Options say what to send where. Client, Callers and Keys must be set.
type Options struct {
	Client  redis.Options
	Cluster bool // Client.Addr is a node of a cluster
	Callers int
	Batch   int // commands that a caller sends together; 0: one

	// Command is a command with its arguments, in which __key__ and __data__ stand
	// for a key and a value. Empty: SET and GET, in the ratio of Sets to Gets.
	Command    []string
	Sets, Gets int

	Prefix       string // of keys, which follows their number
	Keys         int64
	Distribution string
	Exponent     float64 // of Zipf
	Size         int     // of values
	Seed         uint64
}

const (
	// maxSize bounds values, as Redis does by default.
	maxSize = 512 << 20
	// maxAtOnce keeps commands below what the client can have under way.
	maxAtOnce = 1 << 21
	// callMemory is what the client counts for a call beside its request, and a
	// margin.
	callMemory = 2048
)

// Check returns the first thing that is wrong, connections left out.
func (o *Options) Check() error {
	switch {
	case o.Size < MinSize || o.Size > maxSize:
		return fmt.Errorf("values of %d bytes; expected %d, which say to which key they belong, to %d", o.Size, MinSize, maxSize)
	case o.Batch < 0 || o.Batch > 65_536:
		return fmt.Errorf("%d commands at once; expected 1 to 65536", o.Batch)
	case o.Callers < 1 || o.Callers*max(o.Batch, 1) > maxAtOnce:
		return fmt.Errorf("%d callers with %d commands at once; expected at most %d commands of all together", o.Callers, max(o.Batch, 1), maxAtOnce)
	case len(o.Command) == 0 && (o.Sets < 0 || o.Gets < 0 || o.Sets+o.Gets == 0):
		return fmt.Errorf("a ratio of %d SET to %d GET; expected one such as 1:10", o.Sets, o.Gets)
	}
	return o.checkKeys()
}

// A Target is a Redis server or cluster. It is made by [Connect].
type Target struct {
	// Immutable after Connect.
	options Options
	name    string
	client  *redis.Client
	command *command // nil: SET and GET

	sequence atomic.Uint64 // of the values written

	mu      sync.Mutex
	callers []*caller // guarded by mu
	before  *Tally    // guarded by mu: at the start of the window
	after   Tally     // guarded by mu: when it was read last
}

// Connect returns a target whose client is connected. It must be closed.
func Connect(ctx context.Context, o Options) (*Target, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	atOnce := o.Callers * max(o.Batch, 1)
	// Bounds of the client are not what is measured.
	o.Client.MaxCalls = max(o.Client.MaxCalls, 1<<16, 2*atOnce)
	o.Client.MaxBytes = max(o.Client.MaxBytes, 64<<20, 2*atOnce*(2*o.Size+callMemory))
	o.Client.Retries = -1 // what fails is to be seen
	t := &Target{options: o, name: o.name()}
	if len(o.Command) > 0 {
		t.command = newCommand(o.Command)
	}
	var err error
	if o.Cluster {
		c := redis.ClusterOptions{Options: o.Client, Seeds: []string{o.Client.Addr}}
		c.Addr = ""
		t.client, err = redis.ConnectCluster(ctx, c)
	} else {
		t.client, err = redis.Connect(ctx, o.Client)
	}
	if err != nil {
		return nil, err
	}
	return t, nil
}

// name says what is sent where. Of a command only its name is said: arguments may
// be secrets, such as those of AUTH.
func (o *Options) name() string {
	what := fmt.Sprintf("SET and GET, %d to %d,", o.Sets, o.Gets)
	switch {
	case len(o.Command) > 0:
		what = strings.ToUpper(o.Command[0])
	case o.Sets == 0:
		what = "GET"
	case o.Gets == 0:
		what = "SET"
	}
	return what + " at " + o.Client.String()
}

// Name returns what is sent where, without passwords.
func (t *Target) Name() string { return t.name }

// Close closes the client.
func (t *Target) Close() error { return t.client.Close() }

// Fill writes a value of each key.
func (t *Target) Fill(ctx context.Context) error {
	const atOnce = 256
	var batch redis.Batch
	var key, value []byte
	for from := int64(0); from < t.options.Keys; from += atOnce {
		batch.Reset()
		for n := from; n < min(from+atOnce, t.options.Keys); n++ {
			key = t.options.appendKey(key[:0], n)
			value = appendValue(value[:0], n, t.sequence.Add(1), t.options.Size)
			batch.AddCmd(nil, "SET", string(key), value)
		}
		if err := t.client.DoBatch(ctx, &batch); err != nil {
			return fmt.Errorf("redisload: write the values: %w", err)
		}
	}
	return nil
}

// NewCaller implements [load.Target].
func (t *Target) NewCaller(_ context.Context, i int) (load.Caller, error) {
	c := newCaller(t, i)
	t.mu.Lock()
	defer t.mu.Unlock()
	t.callers = append(t.callers, c)
	return c, nil
}

// Costs returns a counter of the CPU time that INFO tells, or none if the user
// may not ask.
func (t *Target) Costs(ctx context.Context) []load.Counter {
	read := func(ctx context.Context) (float64, error) {
		var sum time.Duration
		err := t.client.ForEachMaster(ctx, func(ctx context.Context, master *redis.Client) error {
			text, err := master.Info(ctx, "cpu")
			if err != nil {
				return err
			}
			cpu, err := parseCPU(text)
			sum += cpu
			return err
		})
		return float64(sum), err
	}
	if _, err := read(ctx); err != nil {
		return nil
	}
	return []load.Counter{{Name: "Redis, by INFO", Read: read}}
}

// parseCPU returns user and system time of the process of a server.
func parseCPU(info string) (sum time.Duration, err error) {
	found := 0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "used_cpu_sys" && name != "used_cpu_user" {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("redisload: INFO: %q is no time", line)
		}
		sum += time.Duration(seconds * float64(time.Second))
		found++
	}
	if found != 2 {
		return 0, errors.New("redisload: INFO does not tell the CPU time")
	}
	return sum, nil
}
