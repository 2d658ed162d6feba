package pages

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"math/rand/v2"

	"github.com/slipstream-go/slipstream/bench/internal/loadproc"
	"github.com/slipstream-go/slipstream/internal/load"
	"github.com/slipstream-go/slipstream/redis"
)

// TargetName is the name of package redis as the client in a [loadproc.Spec].
const TargetName = "pages"

// Targets lists the targets with which a load process reads the documents of a server, with package
// redis or over plain connections.
func Targets() loadproc.Targets {
	return loadproc.Targets{
		TargetName: func(ctx context.Context, s loadproc.Spec) (load.Target, error) { return Open(ctx, s.Address, s.Seed) },
		PlainName:  openPlain,
		ThriftName: openThrift,
	}
}

// A Target is one client that all callers share. It implements [load.Target].
type Target struct {
	// Immutable after Open.
	Client *redis.Client
	seed   uint64
	keys   []string
	values [][]byte
}

// Open connects a client to the server at address. The caller closes the target.
func Open(ctx context.Context, address string, seed uint64) (*Target, error) {
	c, err := redis.Connect(ctx, redis.Options{Addr: address})
	if err != nil {
		return nil, err
	}
	t := &Target{Client: c, seed: seed}
	for n := range Count {
		t.keys, t.values = append(t.keys, Key(n)), append(t.values, Document(n))
	}
	return t, nil
}

// NewCaller implements [load.Target].
func (t *Target) NewCaller(_ context.Context, i int) (load.Caller, error) {
	return &caller{target: t, rng: rand.New(rand.NewPCG(t.seed, uint64(i))), buffer: make([]byte, 0, 4096)}, nil
}

// Close ends the client.
func (t *Target) Close() error { return t.Client.Close() }

// A caller requests random documents.
type caller struct {
	target *Target

	// Owned by the goroutine that calls Do.
	rng    *rand.Rand
	buffer []byte
}

// Do implements [load.Caller].
func (c *caller) Do(ctx context.Context) error { return c.get(ctx, c.rng.IntN(len(c.target.keys))) }

// get requests one document and compares it.
func (c *caller) get(ctx context.Context, n int) error {
	value, found, err := c.target.Client.GetAppend(ctx, c.buffer[:0], c.target.keys[n])
	if err != nil {
		return err
	}
	if !found || !bytes.Equal(value, c.target.values[n]) {
		return fmt.Errorf("%s is %.60q (found: %v), want %.60q", c.target.keys[n], value, found, c.target.values[n])
	}
	return nil
}

// Close implements [load.Caller]: the client is closed once, by the target.
func (c *caller) Close() error { return nil }

// Verify compares every step-th document of a server with what is expected; with 1, it
// compares all of them, which also warms the server's memory.
func Verify(ctx context.Context, address string, step int) (err error) {
	t, err := Open(ctx, address, 0)
	if err != nil {
		return err
	}
	defer func() { err = errors.Join(err, t.Close()) }()
	c, err := t.NewCaller(ctx, 0)
	if err != nil {
		return err
	}
	for n := 0; n < Count; n += max(step, 1) {
		if err := c.(*caller).get(ctx, n); err != nil {
			return err
		}
	}
	return nil
}
