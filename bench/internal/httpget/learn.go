package httpget

import (
	"context"
	"errors"
	"fmt"
	"hash/maphash"
	"math/rand/v2"
	"sync"
	"sync/atomic"
)

// Learn requests every key once and remembers the answers. With a Coding it requests every key
// twice, because a server may send a document that it has just loaded uncompressed.
func (t *Target) Learn(ctx context.Context) error {
	t.hashSeed = maphash.MakeSeed()
	p := &firstPass{target: t, learned: make([]uint64, t.Keys+1), documents: make([][]byte, t.Keys+1)}
	if t.Learners > 0 {
		p.order = rand.New(rand.NewPCG(t.Seed, 3)).Perm(int(t.Keys))
	}
	failures := make([]error, max(t.Learners, 1))
	var learners sync.WaitGroup
	for i := range failures {
		// Ends when no key is left, when any of them failed or with ctx; waited for below.
		learners.Go(func() {
			if failures[i] = p.run(ctx, i); failures[i] != nil {
				p.next.Add(t.Keys)
			}
		})
	}
	learners.Wait()
	if err := errors.Join(failures...); err != nil {
		return fmt.Errorf("httpget: first pass: %w", err)
	}
	t.bytes, t.learned = p.bytes.Load(), p.learned
	if t.Batch > 0 {
		t.documents = p.documents
	}
	return nil
}

// A firstPass is the state of a running Learn.
type firstPass struct {
	// Immutable.
	target *Target
	order  []int // keys minus one; if nil, keys are requested in order

	// Each element is owned by the connection that requests the key.
	learned   []uint64
	documents [][]byte

	// Atomics, of all connections.
	next  atomic.Int64 // number of keys taken
	bytes atomic.Int64
}

// run sends requests over one connection until no key is left.
func (p *firstPass) run(ctx context.Context, i int) error {
	c, err := p.target.dial(ctx, i)
	if err != nil {
		return err
	}
	defer c.Close()
	stop := context.AfterFunc(ctx, func() { _ = c.Close() })
	defer stop()
	for n := p.next.Add(1); n <= p.target.Keys; n = p.next.Add(1) {
		key := n
		if p.order != nil {
			key = 1 + int64(p.order[n-1])
		}
		if err := p.ask(c, key); err != nil {
			return err
		}
	}
	return nil
}

func (p *firstPass) ask(c *Caller, key int64) error {
	t := p.target
	if t.Coding != "" {
		c.anyCoding = true
		_, err := c.get(key)
		c.anyCoding = false
		if err != nil {
			return err
		}
	}
	c.learning = true
	body, err := c.get(key)
	c.learning = false
	if err != nil {
		return err
	}
	p.learned[key] = maphash.Bytes(t.hashSeed, body)
	p.bytes.Add(int64(len(body)))
	p.documents[key], err = t.judge(c, key, body)
	return err
}
