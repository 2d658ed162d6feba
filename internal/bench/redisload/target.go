package redisload

import (
	"context"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/redis"
)

// Options specifies which commands to send, and where. Client, Callers, Operations, Keys and Size
// must be set.
type Options struct {
	Client  redis.Options
	Cluster bool // Client.Addr is a node of a cluster
	Callers int
	Batch   int // commands that a caller sends together; 0 means one

	// Operations are commands with their arguments, in which __key__ and __data__ stand
	// for a key and a value. The values of GET __key__ are checked.
	Operations []mix.Operation
	Each       bool // record each operation

	Keys clientload.Keys
	Size int // of values
}

// Get and Set are the operations whose values are checked.
var (
	Get = mix.Operation{Name: "GET", Command: []string{"GET", keyPlace}}
	Set = mix.Operation{Name: "SET", Command: []string{"SET", keyPlace, dataPlace}}
)

const (
	// maxSize bounds the size of values; it is the default limit of Redis.
	maxSize = 512 << 20
	// maxAtOnce keeps the number of commands below what the client allows in flight.
	maxAtOnce = 1 << 21
	// callMemory is the memory that the client counts for a call in addition to its request, plus a
	// margin.
	callMemory = 2048
)

// Check returns an error for the first invalid field, except those for connections.
func (o *Options) Check() error {
	switch {
	case o.Size < clientload.MinSize || o.Size > maxSize:
		return fmt.Errorf("values of %d bytes; expected %d, the minimum for values that identify their key, to %d", o.Size, clientload.MinSize, maxSize)
	case o.Batch < 0 || o.Batch > 65_536:
		return fmt.Errorf("%d commands at once; expected 1 to 65536", o.Batch)
	case o.Callers < 1 || o.Callers*max(o.Batch, 1) > maxAtOnce:
		return fmt.Errorf("%d callers with %d commands at once; expected at most %d commands of all callers together", o.Callers, max(o.Batch, 1), maxAtOnce)
	case len(o.Operations) == 0:
		return errors.New("no commands")
	}
	return o.Keys.Check()
}

// A Target is a Redis server or cluster. It is created by [Connect].
type Target struct {
	// Immutable after Connect.
	options    Options
	name       string
	client     *redis.Client
	operations []operation
	weights    mix.Weights
	ledger     *clientload.Ledger
	recorder   *mix.Recorder // nil if operations are not recorded separately

	tallies clientload.Tallies
}

// Connect returns a target whose client is connected. It must be closed.
func Connect(ctx context.Context, o Options) (*Target, error) {
	if err := o.Check(); err != nil {
		return nil, err
	}
	// The limits of the client must not affect the measurement. They are divided among the sockets, so each
	// share must have room for a batch; callers that share a socket while others are being connected wait.
	batch, sockets := max(o.Batch, 1), max(o.Client.Sockets, 1)
	atOnce := max(2*o.Callers, sockets) * batch
	o.Client.MaxCalls = max(o.Client.MaxCalls, 1<<16, atOnce)
	o.Client.MaxBytes = max(o.Client.MaxBytes, 64<<20, atOnce*(2*o.Size+callMemory))
	o.Client.WaitWhenFull = true
	o.Client.Retries = -1 // so that failures are visible
	t := &Target{options: o, weights: mix.WeightsOf(o.Operations), ledger: clientload.NewLedger(o.Keys.Count)}
	t.name = mix.Describe(o.Operations) + " at " + o.Client.String()
	for _, one := range o.Operations {
		t.operations = append(t.operations, newOperation(one.Command))
	}
	if o.Each {
		t.recorder = mix.NewRecorder(o.Operations)
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

// Name describes what is sent and where, without passwords.
func (t *Target) Name() string { return t.name }

// Tally returns the counts of replies in the window.
func (t *Target) Tally() clientload.Tally { return t.tallies.Sum() }

// Tracks reports whether stale values are detected. They are not if there are too many keys.
func (t *Target) Tracks() bool { return t.ledger.Tracks() }

// Figures returns the figures of each operation, if they are recorded separately.
func (t *Target) Figures() []mix.Figures { return t.recorder.Figures() }

// Counters returns what [load.Run] reads before and after the window.
func (t *Target) Counters() []load.Counter {
	return append(t.recorder.Counters(), t.tallies.Counter())
}

// Close closes the client.
func (t *Target) Close() error { return t.client.Close() }

// Fill writes a value for each key.
func (t *Target) Fill(ctx context.Context) error {
	const atOnce = 256
	var batch redis.Batch
	var key, value []byte
	writes := make([]clientload.Write, 0, atOnce)
	for from, keys := int64(0), t.options.Keys.Count; from < keys; from += atOnce {
		batch.Reset()
		writes = writes[:0]
		for n := from; n < min(from+atOnce, keys); n++ {
			w := t.ledger.Begin(n)
			writes = append(writes, w)
			key = t.options.Keys.AppendName(key[:0], n)
			value = clientload.AppendValue(value[:0], n, w.Sequence, t.options.Size)
			batch.AddCmd(nil, "SET", string(key), value)
		}
		if err := t.client.DoBatch(ctx, &batch); err != nil {
			return fmt.Errorf("redisload: write the values: %w", err)
		}
		for _, w := range writes {
			t.ledger.Acknowledged(w)
		}
	}
	return nil
}

// NewCaller implements [load.Target].
func (t *Target) NewCaller(_ context.Context, i int) (load.Caller, error) {
	return newCaller(t, i), nil
}

// Costs returns a counter of the CPU time that INFO reports, or none if the user may not run INFO.
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

// parseCPU returns the user and system time of the process of a server.
func parseCPU(info string) (sum time.Duration, err error) {
	found := 0
	for line := range strings.Lines(info) {
		name, value, _ := strings.Cut(strings.TrimSpace(line), ":")
		if name != "used_cpu_sys" && name != "used_cpu_user" {
			continue
		}
		seconds, err := strconv.ParseFloat(value, 64)
		if err != nil {
			return 0, fmt.Errorf("redisload: INFO: %q is not a number of seconds", line)
		}
		sum += time.Duration(seconds * float64(time.Second))
		found++
	}
	if found != 2 {
		return 0, errors.New("redisload: INFO does not report the CPU time")
	}
	return sum, nil
}
