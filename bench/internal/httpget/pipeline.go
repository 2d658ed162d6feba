package httpget

import (
	"context"
	"fmt"
	"hash/maphash"
	"strconv"
)

// pipelineMemory is large enough for the answers of a pipeline of 16 typical requests.
const pipelineMemory = 64 << 10

// DoBatch implements [load.BatchCaller]: all requests are sent with one write, and the answers,
// which must arrive in the same order, are checked like those of Do.
func (c *Caller) DoBatch(ctx context.Context, outcomes []error) {
	if err := c.pipeline(ctx, outcomes); err != nil {
		c.broken = true
		for i := range outcomes {
			outcomes[i] = err
		}
	}
}

// pipeline makes one batch. It returns the error that ends the connection.
func (c *Caller) pipeline(ctx context.Context, outcomes []error) error {
	if err := c.repair(ctx); err != nil {
		return err
	}
	c.conn.Reserve(pipelineMemory)
	c.request, c.keys = c.request[:0], c.keys[:0]
	for range outcomes {
		key := 1 + c.rng.Int64N(c.target.Keys)
		c.keys = append(c.keys, key)
		c.request = append(c.request, "GET "...)
		c.request = append(c.request, c.target.Path...)
		c.request = strconv.AppendInt(c.request, key, 10)
		c.finishRequest()
	}
	if err := c.conn.Idle(); err != nil {
		return err
	}
	if err := c.conn.Send(c.request); err != nil {
		return err
	}
	for i, key := range c.keys {
		body, err := c.readAnswer()
		if err != nil {
			return fmt.Errorf("httpget: answer %d of %d: key %d: %w", i+1, len(c.keys), key, err)
		}
		if err := c.checkOne(key, body); err != nil {
			return err
		}
	}
	return nil
}

// checkOne checks a body as Do does.
func (c *Caller) checkOne(key int64, body []byte) error {
	t := c.target
	if t.Coding == "" {
		if err := c.checkKey(key, body); err != nil {
			return err
		}
	}
	c.done++
	switch {
	case t.learned == nil && t.Coding != "":
		_, err := t.judge(c, key, body)
		return err
	case t.learned == nil || t.Coding == "" && c.done%sampled != 0:
		return nil
	case maphash.Bytes(t.hashSeed, body) != t.learned[key]:
		return fmt.Errorf("httpget: the body of key %d differs from that of the first pass", key)
	}
	return nil
}
