package thriftload

import (
	"context"
	"errors"
	"fmt"
	"strings"
	"sync/atomic"

	"github.com/slipstream-go/slipstream/internal/bench/clientload"
	"github.com/slipstream-go/slipstream/internal/bench/mix"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/thrift/generic"
	"github.com/slipstream-go/slipstream/thrift/idl"
	"github.com/slipstream-go/slipstream/thrift/rpc"
)

// Options specifies which functions to call, and where. Client, Callers, Operations, Keys and Size
// must be set.
type Options struct {
	Client  rpc.ClientConfig
	Callers int

	// Operations are SERVICE.FUNCTION ARGUMENTS. Arguments are a JSON object, in whose text __key__
	// and __data__ stand for a key and a value. Without IDL there are none, and the function gets a
	// single string as the argument with the ID 1.
	Operations []mix.Operation
	Each       bool // record each operation

	IDL      string // file; if empty, there is none
	Includes []string
	Echo     bool // without IDL, the function must return the string that it got
	// Idempotent means that all functions may be executed twice, not only those that the IDL marks
	// as such. Servers that answer in order get several of their calls at once.
	Idempotent bool

	Keys clientload.Keys
	Size int // of values
}

const (
	// maxSize bounds the size of values. Servers limit the size of messages, usually to 16 MiB.
	maxSize = 64 << 20
	// maxCallers bounds the number of calls in flight.
	maxCallers = 1 << 20
	// callMemory is the memory that the client counts for a call in addition to its arguments, plus
	// a margin.
	callMemory = 2048
)

// Check returns an error for the first invalid field, except those for connections.
func (o *Options) Check() error {
	_, err := o.functions()
	return err
}

// functions checks the options and returns the functions.
func (o *Options) functions() ([]*function, error) {
	switch {
	case o.Size < clientload.MinSize || o.Size > maxSize:
		return nil, fmt.Errorf("values of %d bytes; expected %d to %d", o.Size, clientload.MinSize, maxSize)
	case o.Callers < 1 || o.Callers > maxCallers:
		return nil, fmt.Errorf("%d callers; expected 1 to %d", o.Callers, maxCallers)
	case len(o.Operations) == 0:
		return nil, errors.New("no functions")
	case o.Echo && o.IDL != "":
		return nil, errors.New("both IDL and an echo; expected only one of them, because --echo calls a function of a single string")
	case o.IDL == "" && len(o.Includes) > 0:
		return nil, errors.New("directories of included files without IDL")
	}
	if err := o.Keys.Check(); err != nil {
		return nil, err
	}
	var program *idl.Program
	if o.IDL != "" {
		var err error
		if program, err = idl.Load(idl.Config{Dirs: o.Includes}, o.IDL); err != nil {
			return nil, err
		}
	}
	var all []*function
	for i := range o.Operations {
		f, err := newFunction(o, program, o.Operations[i].Command)
		if err != nil {
			return nil, o.Operations[i].Wrong(err)
		}
		all = append(all, f)
	}
	return all, nil
}

// codec returns the codec for arguments.
func (o *Options) codec() generic.Codec {
	return generic.Codec{Compact: o.Client.Compact, Strict: true}
}

// places returns what replaces the placeholders in arguments.
func (o *Options) places(key int64, sequence uint64) *strings.Replacer {
	return strings.NewReplacer(keyPlace, string(o.Keys.AppendName(nil, key)), dataPlace, string(clientload.AppendValue(nil, key, sequence, o.Size)))
}

// A Target is a Thrift server. It is created by [Connect].
type Target struct {
	// Immutable after Connect.
	options   Options
	name      string
	client    *rpc.Client
	codec     generic.Codec
	functions []*function
	weights   mix.Weights
	recorder  *mix.Recorder // nil if operations are not recorded separately

	sequence atomic.Uint64 // of values

	tallies clientload.Tallies
}

// Connect returns a target whose client is connected. It must be closed.
func Connect(ctx context.Context, o Options) (*Target, error) {
	functions, err := o.functions()
	if err != nil {
		return nil, err
	}
	// The limits of the client must not affect the measurement.
	o.Client.MaxCalls = max(o.Client.MaxCalls, 1<<16, 2*o.Callers)
	o.Client.MaxBytes = max(o.Client.MaxBytes, 256<<20, 2*o.Callers*(2*o.Size+callMemory))
	o.Client.MaxMessage = max(o.Client.MaxMessage, 16<<20, 2*o.Size)
	o.Client.Retries = -1 // so that failures are visible
	t := &Target{options: o, codec: o.codec(), functions: functions, weights: mix.WeightsOf(o.Operations)}
	t.name = mix.Describe(o.Operations) + " at " + o.Address()
	if o.Each {
		t.recorder = mix.NewRecorder(o.Operations)
	}
	if t.client, err = rpc.NewClient(o.Client); err != nil {
		return nil, err
	}
	if err := t.client.Connect(ctx); err != nil {
		_ = t.client.Close()
		return nil, err
	}
	return t, nil
}

// Address returns the address to which calls are sent, with the transport and the protocol.
func (o *Options) Address() string {
	protocol := "binary"
	if o.Client.Compact {
		protocol = "compact"
	}
	secure := ""
	if o.Client.TLS != nil {
		secure = ", TLS"
	}
	return fmt.Sprintf("%s (%v, %s%s)", o.Client.Addr, o.Client.Transport, protocol, secure)
}

// Name describes what is called and where.
func (t *Target) Name() string { return t.name }

// Tally returns the counts of replies in the window: Others and Wrong.
func (t *Target) Tally() clientload.Tally { return t.tallies.Sum() }

// Figures returns the figures of each operation, if they are recorded separately.
func (t *Target) Figures() []mix.Figures { return t.recorder.Figures() }

// Counters returns what [load.Run] reads before and after the window.
func (t *Target) Counters() []load.Counter {
	return append(t.recorder.Counters(), t.tallies.Counter())
}

// Close closes the client.
func (t *Target) Close() error { return t.client.Close() }

// NewCaller implements [load.Target].
func (t *Target) NewCaller(_ context.Context, i int) (load.Caller, error) {
	return newCaller(t, i), nil
}
