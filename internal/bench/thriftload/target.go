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

// Options say what to call where. Client, Callers, Operations, Keys and Size must be set.
type Options struct {
	Client  rpc.ClientConfig
	Callers int

	// Operations are SERVICE.FUNCTION ARGUMENTS. Arguments are a JSON object, in whose text __key__
	// and __data__ stand for a key and a value. Without IDL there are none, and the function gets
	// one text, the argument with the ID 1.
	Operations []mix.Operation
	Each       bool // record each operation

	IDL      string // file; empty: none
	Includes []string
	Echo     bool // without IDL: the function must return the text that it got
	// Idempotent says that all functions may be executed twice, besides those that the IDL says it
	// of. Servers that answer in order get several of their calls at once.
	Idempotent bool

	Keys clientload.Keys
	Size int // of values
}

const (
	// maxSize bounds values. Servers have a bound of messages, usually 16 MiB.
	maxSize = 64 << 20
	// maxCallers bounds the calls under way.
	maxCallers = 1 << 20
	// callMemory is what the client counts for a call beside its arguments, and a margin.
	callMemory = 2048
)

// Check returns the first thing that is wrong, connections left out.
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
		return nil, errors.New("both IDL and an echo; expected one of them: an echo is of a function of one text")
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

// codec returns the codec of arguments.
func (o *Options) codec() generic.Codec {
	return generic.Codec{Compact: o.Client.Compact, Strict: true}
}

// places returns what stands in the places of arguments.
func (o *Options) places(key int64, sequence uint64) *strings.Replacer {
	return strings.NewReplacer(keyPlace, string(o.Keys.AppendName(nil, key)), dataPlace, string(clientload.AppendValue(nil, key, sequence, o.Size)))
}

// A Target is a Thrift server. It is made by [Connect].
type Target struct {
	// Immutable after Connect.
	options   Options
	name      string
	client    *rpc.Client
	codec     generic.Codec
	functions []*function
	weights   mix.Weights
	recorder  *mix.Recorder // nil: operations are not told apart

	sequence atomic.Uint64 // of values

	tallies clientload.Tallies
}

// Connect returns a target whose client is connected. It must be closed.
func Connect(ctx context.Context, o Options) (*Target, error) {
	functions, err := o.functions()
	if err != nil {
		return nil, err
	}
	// Bounds of the client are not what is measured.
	o.Client.MaxCalls = max(o.Client.MaxCalls, 1<<16, 2*o.Callers)
	o.Client.MaxBytes = max(o.Client.MaxBytes, 256<<20, 2*o.Callers*(2*o.Size+callMemory))
	o.Client.MaxMessage = max(o.Client.MaxMessage, 16<<20, 2*o.Size)
	o.Client.Retries = -1 // what fails is to be seen
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

// Address returns where the calls go, and how.
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

// Name returns what is called where.
func (t *Target) Name() string { return t.name }

// Tally returns what the replies in the window were: Others and Wrong.
func (t *Target) Tally() clientload.Tally { return t.tallies.Sum() }

// Figures returns those of each operation, if they are told apart.
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
