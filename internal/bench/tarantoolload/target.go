package tarantoolload

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"time"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/tarantool"
)

// Options specifies which requests to send, and where. Client, Callers, Operations, Keys and Size
// must be set, and Space if operations need it.
type Options struct {
	Client  tarantool.Options
	Callers int

	// Operations are select, replace, call FUNCTION ARG... and eval LUA ARG... An argument is JSON
	// or, if it is not valid JSON, a string; in it, __key__ and __data__ stand for a key and a
	// value.
	Operations []mix.Operation
	Each       bool // record each operation

	// Space has tuples of a key and a value. Its keys are numbers or, if Keys has a prefix,
	// strings.
	Space  string
	Create bool // create the space if it does not exist
	Keys   clientload.Keys
	Size   int // of values
}

const (
	// maxSize bounds the size of values. Servers have their own limit, which is usually 1 MiB.
	maxSize = 64 << 20
	// maxCallers keeps the number of requests below what a connection of the client allows in
	// flight.
	maxCallers = 1 << 19
	// callMemory is the memory that the client counts for a call in addition to its request, plus a
	// margin.
	callMemory = 2048
)

// Check returns an error for the first invalid field, except those for connections.
func (o *Options) Check() error {
	switch {
	case o.Size < clientload.MinSize || o.Size > maxSize:
		return fmt.Errorf("values of %d bytes; expected %d, the minimum for values that identify their key, to %d", o.Size, clientload.MinSize, maxSize)
	case o.Callers < 1 || o.Callers > maxCallers:
		return fmt.Errorf("%d callers; expected 1 to %d", o.Callers, maxCallers)
	case len(o.Operations) == 0:
		return errors.New("no operations")
	}
	for i := range o.Operations {
		if _, err := newOperation(o.Operations[i].Command); err != nil {
			return o.Operations[i].Wrong(err)
		}
	}
	return o.Keys.Check()
}

// A Target is a Tarantool instance. It is created by [Connect].
type Target struct {
	// Immutable after Connect.
	options    Options
	name       string
	client     *tarantool.Client
	space      *tarantool.Space[row]
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
	// share must have room for a call; callers that share a socket while others are being connected wait.
	atOnce := max(2*o.Callers, o.Client.Sockets)
	o.Client.MaxCalls = max(o.Client.MaxCalls, 1<<16, atOnce)
	o.Client.MaxBytes = max(o.Client.MaxBytes, 64<<20, atOnce*(2*o.Size+callMemory))
	o.Client.WaitWhenFull = true
	o.Client.Retries = -1 // so that failures are visible
	t := &Target{options: o, weights: mix.WeightsOf(o.Operations), ledger: clientload.NewLedger(o.Keys.Count)}
	for i := range o.Operations {
		one, err := newOperation(o.Operations[i].Command)
		if err != nil {
			return nil, err
		}
		t.operations = append(t.operations, one)
	}
	if o.Each {
		t.recorder = mix.NewRecorder(o.Operations)
	}
	t.name = mix.Describe(o.Operations) + " at " + o.Client.String()
	var err error
	if t.client, err = tarantool.Connect(ctx, o.Client); err != nil {
		return nil, err
	}
	t.space = tarantool.SpaceOf[row](t.client, o.Space)
	if err := t.prepareSpace(ctx); err != nil {
		_ = t.client.Close()
		return nil, err
	}
	return t, nil
}

// createSpace creates a space. Its arguments are the name, and the type of the keys.
const createSpace = `
local name, kind = ...
if box.space[name] == nil then
    local s = box.schema.space.create(name, {format = {{name = 'key', type = kind}, {name = 'value', type = 'string'}}})
    s:create_index('primary', {parts = {1, kind}})
end`

// A SpaceError reports why the space cannot be used.
type SpaceError struct {
	Space string
	Err   error
}

// Error returns the name of the space, and why it cannot be used.
func (e *SpaceError) Error() string { return fmt.Sprintf("the space %q: %v", e.Space, e.Err) }

// prepareSpace creates the space if the options request it, and reads a tuple, so that a space that
// is missing or has other keys is noticed before any request.
func (t *Target) prepareSpace(ctx context.Context) error {
	o := &t.options
	if !slices.ContainsFunc(t.operations, func(o operation) bool { return o.kind == opSelect || o.kind == opReplace }) {
		return nil
	}
	var first key
	kind := "unsigned"
	if o.Keys.Prefix != "" {
		first.name, kind = o.Keys.AppendName(nil, 0), "string"
	}
	if o.Create {
		if err := t.client.Do(ctx, nil, tarantool.Eval(createSpace, o.Space, kind)); err != nil {
			return t.spaceError(err)
		}
	}
	_, err := t.space.Get(ctx, new(row), first.part())
	return t.spaceError(err)
}

// spaceError converts an error of the server about the space to a SpaceError. Other errors are
// returned unchanged.
func (t *Target) spaceError(err error) error {
	var refused *tarantool.ServerError
	switch {
	case errors.Is(err, tarantool.ErrNoSuchSpace):
		return &SpaceError{t.options.Space, errors.New("it does not exist; expected --create")}
	case errors.As(err, &refused):
		return &SpaceError{t.options.Space, refused}
	}
	return err
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
	var one row
	var name []byte
	writes, replies := make([]clientload.Write, 0, atOnce), make([]tarantool.Future, 0, atOnce)
	for from, keys := int64(0), t.options.Keys.Count; from < keys; from += atOnce {
		writes, replies = writes[:0], replies[:0]
		for n := from; n < min(from+atOnce, keys); n++ {
			w := t.ledger.Begin(n)
			one.key = key{number: n}
			if t.options.Keys.Prefix != "" {
				name = t.options.Keys.AppendName(name[:0], n)
				one.key.name = name
			}
			one.value = clientload.AppendValue(one.value[:0], n, w.Sequence, t.options.Size)
			writes, replies = append(writes, w), append(replies, t.client.Start(ctx, tarantool.Replace(t.options.Space, &one)))
		}
		for i, reply := range replies {
			if err := reply.Wait(nil); err != nil {
				return t.spaceError(err) // the caller then closes the client, which ends the other requests
			}
			t.ledger.Acknowledged(writes[i])
		}
	}
	return nil
}

// NewCaller implements [load.Target].
func (t *Target) NewCaller(_ context.Context, i int) (load.Caller, error) {
	return newCaller(t, i), nil
}

// Costs returns a counter of the CPU time of the process of the server, or none if the user may not
// run Lua.
func (t *Target) Costs(ctx context.Context) []load.Counter {
	request := tarantool.Eval("return require('clock').proc()")
	read := func(ctx context.Context) (float64, error) {
		var seconds []float64
		if err := t.client.Do(ctx, &seconds, request); err != nil {
			return 0, err
		}
		if len(seconds) != 1 {
			return 0, errors.New("tarantoolload: the server does not report its CPU time")
		}
		return seconds[0] * float64(time.Second), nil
	}
	if _, err := read(ctx); err != nil {
		return nil
	}
	return []load.Counter{{Name: "Tarantool, by clock.proc", Read: read}}
}
