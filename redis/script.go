package redis

import (
	"context"
	"crypto/sha1"
	"encoding/hex"
	"errors"
	"sync"

	"github.com/slipstream-go/slipstream"
)

// A Script is a Lua script that servers cache by its hash. It is immutable, and may be used by
// several goroutines and clients.
//
// https://redis.io/docs/latest/develop/programmability/eval-intro/
type Script struct {
	source, hash string
	byHash       string // EVALSHA or EVALSHA_RO
	bySource     string
}

// NewScript returns a script.
func NewScript(source string) *Script {
	return newScript(source, "EVALSHA", "EVAL")
}

// NewReadOnlyScript returns a script that changes nothing, which the server enforces (version 7 and
// later). It is retried like commands that only read.
func NewReadOnlyScript(source string) *Script {
	return newScript(source, "EVALSHA_RO", "EVAL_RO")
}

func newScript(source, byHash, bySource string) *Script {
	sum := sha1.Sum([]byte(source))
	return &Script{source: source, hash: hex.EncodeToString(sum[:]), byHash: byHash, bySource: bySource}
}

// Hash returns the name of the script at servers: the SHA-1 of its source in hexadecimal digits.
func (s *Script) Hash() string { return s.hash }

// Do runs the script and decodes its result into dst, as [Client.Do] does. The source is sent
// only if the server does not know the script.
func (s *Script) Do(ctx context.Context, c *Client, dst any, keys []string, args ...any) error {
	err := c.Do(ctx, dst, scriptCommand(s.byHash, s.hash, keys, args))
	if !lacksScript(err) {
		return err
	}
	return c.Do(ctx, dst, scriptCommand(s.bySource, s.source, keys, args))
}

// Eval runs a Lua script and decodes its result into dst, as [Client.Do] does. A [Script] sends
// its source only when the server does not know it.
func (c *Client) Eval(ctx context.Context, dst any, source string, keys []string, args ...any) error {
	return c.Do(ctx, dst, scriptCommand("EVAL", source, keys, args))
}

// EvalRO is like [Client.Eval], for scripts that change nothing.
func (c *Client) EvalRO(ctx context.Context, dst any, source string, keys []string, args ...any) error {
	return c.Do(ctx, dst, scriptCommand("EVAL_RO", source, keys, args))
}

// EvalSha runs the script that the server knows by the given hash.
func (c *Client) EvalSha(ctx context.Context, dst any, hash string, keys []string, args ...any) error {
	return c.Do(ctx, dst, scriptCommand("EVALSHA", hash, keys, args))
}

// EvalShaRO is like [Client.EvalSha], for scripts that change nothing.
func (c *Client) EvalShaRO(ctx context.Context, dst any, hash string, keys []string, args ...any) error {
	return c.Do(ctx, dst, scriptCommand("EVALSHA_RO", hash, keys, args))
}

// FCall runs a function of a loaded library. See also [Library].
func (c *Client) FCall(ctx context.Context, dst any, function string, keys []string, args ...any) error {
	return c.Do(ctx, dst, scriptCommand("FCALL", function, keys, args))
}

// FCallRO is like [Client.FCall], for functions that change nothing.
func (c *Client) FCallRO(ctx context.Context, dst any, function string, keys []string, args ...any) error {
	return c.Do(ctx, dst, scriptCommand("FCALL_RO", function, keys, args))
}

// AddScript adds a run of the script to a batch. The first run in a batch is sent with the source,
// so that the server does not have to know the script: if it did not, that would be detected only
// after later commands of the batch had been sent.
func (b *Batch) AddScript(dst any, s *Script, keys []string, args ...any) {
	for i := range b.commands {
		if b.commands[i].script == s {
			b.Add(dst, scriptCommand(s.byHash, s.hash, keys, args))
			return
		}
	}
	cmd := scriptCommand(s.bySource, s.source, keys, args)
	cmd.script = s
	b.Add(dst, cmd)
}

// scriptCommand makes EVAL, EVALSHA or FCALL.
func scriptCommand(name, what string, keys []string, args []any) Command {
	all := make([]any, 0, 2+len(keys)+len(args))
	all = append(all, what, len(keys))
	for _, key := range keys {
		all = append(all, key)
	}
	return Cmd(name, append(all, args...)...)
}

// lacksScript reports whether the server has refused EVALSHA because it does not know the script.
// The script itself may return an error with the same code.
func lacksScript(err error) bool {
	e, ok := errors.AsType[*ServerError](err)
	return ok && e.Code == "NOSCRIPT" && slipstream.OutcomeOf(err) == slipstream.Refused
}

// A Library contains functions that run on the server (version 7 and later). It is loaded when the
// server does not know one of its functions, as after a restart without persistence.
//
// https://redis.io/docs/latest/develop/programmability/functions-intro/
type Library struct {
	code string

	loading sync.Mutex // held by the goroutine that loads the library
}

// NewLibrary returns a library with the given code, which must start with "#!lua name=...".
func NewLibrary(code string) *Library { return &Library{code: code} }

// Load loads the library into the server, replacing a library of the same name.
func (l *Library) Load(ctx context.Context, c *Client) error {
	return c.Do(ctx, nil, Cmd("FUNCTION", "LOAD", "REPLACE", l.code).Idempotent())
}

// Call runs a function and decodes its result into dst, as [Client.Do] does.
func (l *Library) Call(ctx context.Context, c *Client, dst any, function string, keys []string, args ...any) error {
	cmd := scriptCommand("FCALL", function, keys, args)
	err := c.Do(ctx, dst, cmd)
	if !lacksFunction(err) {
		return err
	}
	if err := l.loadOnce(ctx, c, function); err != nil {
		return err
	}
	return c.Do(ctx, dst, cmd)
}

// loadOnce loads the library, unless another caller has done so in the meantime.
func (l *Library) loadOnce(ctx context.Context, c *Client, function string) error {
	l.loading.Lock()
	defer l.loading.Unlock()
	var known []Value
	if err := c.Do(ctx, &known, Cmd("FUNCTION", "LIST", "WITHCODE")); err != nil {
		return err
	}
	for i := range known {
		for _, v := range known[i].Elems {
			if v.Text == l.code {
				return nil
			}
		}
	}
	return l.Load(ctx, c)
}

// lacksFunction reports whether the server has refused FCALL because it does not know the function,
// so that nothing was executed.
func lacksFunction(err error) bool {
	e, ok := errors.AsType[*ServerError](err)
	return ok && e.Code == "ERR" && e.Message == "Function not found"
}
