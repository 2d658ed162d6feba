package redis

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"time"
	"unsafe"

	"github.com/slipstream-go/slipstream"
	"github.com/slipstream-go/slipstream/internal/pipe"
	"github.com/slipstream-go/slipstream/internal/wire/resp"
)

// CacheMode selects the keys for which the server sends invalidations.
type CacheMode uint8

const (
	// CacheReads selects the keys that were read on the shared connection, by any command. The
	// server remembers them.
	CacheReads CacheMode = iota
	// CacheOptIn selects only the keys that were read by [Client.DoCached] and similar methods.
	// Each miss costs one more command.
	CacheOptIn
	// CacheBroadcast selects all keys that start with one of CacheOptions.Prefixes, whether or not
	// they were read. The server remembers nothing.
	CacheBroadcast
)

// CacheOptions enables client-side caching. The zero value is usable. Client-side caching requires
// protocol 3.
//
// https://redis.io/docs/latest/develop/reference/client-side-caching/
type CacheOptions struct {
	// MaxBytes bounds the cache of a client, including keys and 200 bytes per entry. If zero, it
	// defaults to 64 MiB.
	MaxBytes int
	// MaxAge bounds how long an entry is used without querying the server. If zero, an entry is
	// used until the server invalidates it. A connection that is cut silently is detected after
	// about 20 s, if Options.StallTimeout is its default.
	MaxAge time.Duration
	// Mode selects the keys for which the server sends invalidations.
	Mode CacheMode
	// Prefixes are the prefixes for CacheBroadcast; if empty, all keys are selected. They must not
	// overlap. Keys without one of them are not cached.
	Prefixes []string
}

func (o *CacheOptions) check(protocol int) error {
	switch {
	case o.MaxBytes < 0 || o.MaxAge < 0:
		return errors.New("redis: CacheOptions.MaxBytes and MaxAge must not be negative")
	case o.Mode > CacheBroadcast:
		return fmt.Errorf("redis: CacheOptions.Mode is %d; use one of the constants of CacheMode", o.Mode)
	case len(o.Prefixes) > 0 && o.Mode != CacheBroadcast:
		return errors.New("redis: CacheOptions.Prefixes requires Mode CacheBroadcast")
	case protocol == 2:
		return errors.New("redis: client-side caching needs protocol 3")
	}
	return nil
}

// trackingArguments returns the arguments of CLIENT TRACKING in the greeting.
func (o *CacheOptions) trackingArguments() []string {
	args := []string{"CLIENT", "TRACKING", "ON"}
	switch o.Mode {
	case CacheOptIn:
		args = append(args, "OPTIN")
	case CacheBroadcast:
		args = append(args, "BCAST")
		for _, p := range o.Prefixes {
			args = append(args, "PREFIX", p)
		}
	}
	return args
}

// GetCached is like [Client.Get], but queries the server only if necessary; see
// [Client.DoCached].
func (c *Client) GetCached(ctx context.Context, key string) (value string, found bool, err error) {
	if c.cache != nil {
		if frame, ok := c.cache.get(key, ""); ok {
			return bulkIn(frame)
		}
	}
	return c.getMissed(ctx, key)
}

// getMissed is a separate function so that a hit does not allocate.
func (c *Client) getMissed(ctx context.Context, key string) (value string, found bool, err error) {
	var text *string
	cmd := Cmd("GET", key)
	if c.cache != nil && c.cache.covers(cmd.key()) {
		err = c.loadCached(ctx, &text, &cmd, textOfBytes(cmd.key()))
	} else {
		err = c.Do(ctx, &text, cmd)
	}
	if err != nil || text == nil {
		return "", false, err
	}
	return *text, true, nil
}

// bulkIn returns the string in a cached reply, without copying it: it shares the memory of the
// cache, which does not change.
func bulkIn(frame string) (value string, found bool, err error) {
	if frame[0] != byte(resp.BulkString) {
		return "", false, nil // null, the only other reply to GET that is cached
	}
	digits := 1
	for frame[digits] != '\r' {
		digits++
	}
	return frame[digits+2 : len(frame)-2], true, nil
}

// DoCached is like [Client.Do], for commands that only read one key. The reply is cached, and the
// same command is answered from memory until the server reports that the key has changed, the key
// expires, or the connection is lost, which empties the cache. So no returned value is older than
// a change that the server has reported. When a field of a hash expires (Redis 7.4), the client
// is notified when the server removes the field, usually within 0.2 s.
//
// Without Options.Cache, and for commands that are not known to read one key, it is Do.
func (c *Client) DoCached(ctx context.Context, dst any, cmd Command) error {
	if c.cache == nil || cmd.err != nil || cmd.info == nil || !cmd.cacheable() || !c.cache.covers(cmd.key()) {
		return c.Do(ctx, dst, cmd)
	}
	key := textOfBytes(cmd.key()) // part of the frame, which does not change
	if frame, ok := c.cache.get(key, cmd.question()); ok {
		if err := decode(bytesOf(frame), dst); err != nil {
			return c.fail.Executed(cmd.name, err)
		}
		return nil
	}
	return c.loadCached(ctx, dst, &cmd, key)
}

// loadCached queries the server and caches its reply.
func (c *Client) loadCached(ctx context.Context, dst any, cmd *Command, key string) error {
	load := c.cache.begin(key)
	defer c.cache.end(load)
	var reply rawFrame
	expires, err := c.readTracked(ctx, cmd, key, load, &reply)
	if err != nil {
		return err
	}
	if expires != goneAlready && (cmd.info != infoGet || plain(reply)) {
		c.cache.keep(load, cmd.question(), string(reply), expires)
	}
	if err := decode(reply, dst); err != nil {
		return c.fail.Executed(cmd.name, err)
	}
	return nil
}

// plain reports whether a reply has a form that bulkIn can read: a string with a length, or null,
// without attributes in front.
func plain(frame []byte) bool {
	return frame[0] == byte(resp.Null) || frame[0] == byte(resp.BulkString) && frame[1] != '?' && !isNull(frame)
}

// cacheable reports whether the command reads one key and nothing else, so that its reply depends
// only on that key.
func (c *Command) cacheable() bool {
	return c.info.cacheable && c.unshared == nil && c.keyEnd > c.keyAt
}

// question returns what distinguishes the commands that read one key; it is "" for GET.
func (c *Command) question() string {
	if c.info == infoGet {
		return ""
	}
	return textOfBytes(c.frame)
}

// bytesOf returns a string as bytes without a copy; they must not be changed.
func bytesOf(s string) []byte { return unsafe.Slice(unsafe.StringData(s), len(s)) }

// goneAlready is the expiry of a key that expired before its reply could be cached.
const goneAlready = -1

// readTracked reads a key so that the server will report when it changes. Expires is the time at
// which the client must drop the reply on its own, or 0 if it need not.
//
// The two or three commands are one batch on one connection: CLIENT CACHING applies to the
// next command, whichever caller sends it.
func (c *Client) readTracked(ctx context.Context, cmd *Command, key string, load *cacheLoad, reply *rawFrame) (expires int64, err error) {
	commands := make([]Command, 0, 3)
	dsts := make([]any, 0, 3)
	if c.opts.Cache.Mode == CacheOptIn {
		commands, dsts = append(commands, cachingYes), append(dsts, nil)
	}
	var ttl int64
	commands = append(commands, *cmd, Cmd("PTTL", key))
	dsts = append(dsts, reply, &ttl)
	for i := range commands {
		commands[i].whole = true
	}
	r := request{info: cmd.info, name: cmd.name, repeatable: cmd.repeatable()}
	if r.node, r.route, err = c.routeOf(cmd); err != nil {
		return 0, err
	}
	var began time.Time
	for r.loop.Made = 1; ; r.loop.Made++ {
		if c.only == nil {
			load.since = c.cache.epochOf(r.route.slot) // before the owner is looked up
			r.node = c.router.owner(r.route.slot)      // replicas lag behind
		}
		began = time.Now()
		failure := c.tracked(ctx, &r, commands, dsts)
		if failure == nil {
			break
		}
		if c.only != nil || !c.goesOn(ctx, &r, failure) {
			return 0, failure
		}
		if r.route.asking { // the key is moving to another node, which would not track it
			return goneAlready, c.Do(ctx, reply, *cmd)
		}
	}
	switch {
	case ttl >= 0:
		return began.Add(time.Duration(ttl) * time.Millisecond).UnixNano(), nil
	case ttl == -2 && !isNull(*reply):
		return goneAlready, nil // it expired in between
	}
	return 0, nil
}

// tracked sends the commands of readTracked once.
func (c *Client) tracked(ctx context.Context, r *request, commands []Command, dsts []any) *slipstream.Error {
	var of *BatchError
	if err := c.doAllOn(ctx, r.node, commands, dsts, nil); errors.As(err, &of) {
		return r.node.fail.Named(r.name, of.Err)
	}
	return nil
}

// cachingYes makes the server track the keys that the next command reads.
var cachingYes = func() Command {
	cmd := Cmd("CLIENT", "CACHING", "YES")
	cmd.unshared = nil
	return cmd
}()

// CacheStats are the statistics of client-side caching.
type CacheStats struct {
	// Entries is the number of cached replies, and Bytes is their size in memory.
	Entries, Bytes int
	// Hits counts replies from memory, and Misses replies from the server. Of the latter, Raced
	// counts those that were not cached because the key changed meanwhile. Evicted counts replies
	// that were dropped to make room.
	Hits, Misses, Raced, Evicted uint64
	// Invalidated counts keys that the server has reported as changed, and Emptied how often the
	// whole cache was dropped.
	Invalidated, Emptied uint64
}

// pushed handles messages that answer no command, on the reading goroutine. Empty drops everything
// for which the server sends invalidations.
func (c *core) pushed(frame []byte, empty func()) {
	d := resp.NewDecoder(frame)
	tok, err := d.Next()
	if err != nil || tok.Len < 1 {
		return
	}
	word, err := d.Next()
	if err != nil || !bytes.Equal(word.Bytes, []byte("invalidate")) {
		return
	}
	// The invalidation for FLUSHALL is null. A message that cannot be parsed drops everything, too.
	list, err := d.Next()
	if err != nil || tok.Len != 2 || !isAggregate(list) {
		empty()
		return
	}
	e := elements{&d, list.Len}
	for {
		key, ok, err := e.next()
		switch {
		case err != nil || ok && (key.Null || isAggregate(key)):
			empty()
			return
		case !ok:
			return
		}
		c.cache.invalidate(key.Bytes)
	}
}

// withCache prepares the engine's configuration for tracking.
func (c *core) withCache(cfg *pipe.Config, empty func()) {
	cfg.OnPush = func(_ pipe.Pin, frame []byte) { c.pushed(frame, empty) }
	cfg.Traits.AlwaysRead = true // invalidations must be read at any time
	// Redis 6 may write an invalidation into the middle of a reply. That is rare, so everything is
	// dropped.
	cfg.Protocol.(*protocol).aside = empty
	onEvent := cfg.OnEvent
	cfg.OnEvent = func(e slipstream.Event) {
		if e.Kind == slipstream.Disconnected {
			empty() // changes are no longer reported
		}
		if onEvent != nil {
			onEvent(e)
		}
	}
}
