package access

import (
	"bytes"
	"context"
	"crypto/sha256"
	"crypto/subtle"
	"log/slog"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// TokensConfig configures [Tokens]. All fields except File may be zero.
type TokensConfig struct {
	// File holds the digests of the tokens: lines "sha256:<64 hex digits>", or those of a file of
	// API keys, with a name before the digest and "until:<date>" after it. A file without any
	// must hold a # comment.
	File string
	// Reload is how often the file is checked. If zero, it defaults to 5 s; if
	// negative, it is never checked.
	Reload time.Duration
	// Changed is called when a file has changed; err says why the previous contents stay in
	// use. If nil, it is not called.
	Changed func(file string, err error)
	// Log receives changes. If nil, nothing is logged.
	Log *slog.Logger
	// Now is the clock for expiry. If nil, it is time.Now.
	Now func() time.Time
}

// Tokens are the bearer tokens of a file, each of which gives full access to something. Its
// methods are safe for concurrent use.
type Tokens struct {
	// Immutable after OpenTokens.
	cfg     TokensConfig
	file    *watched
	ctx     context.Context // ends with Close
	end     context.CancelFunc
	running sync.WaitGroup // the goroutine that checks the file

	// Atomics. Written by the goroutine that checks the file, read by Find.
	keys atomic.Pointer[keySet]
}

// unnamed is the name of a token whose line has none.
const unnamed = "token"

// OpenTokens reads the file. A mistake in it is a [*FileError]. Later changes are loaded within
// Config.Reload; a file that became invalid changes nothing.
func OpenTokens(cfg TokensConfig) (*Tokens, error) {
	if cfg.Reload == 0 {
		cfg.Reload = defaultReload
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	t := &Tokens{cfg: cfg}
	t.file = &watched{path: cfg.File, most: maxKeysFile, take: t.take, log: cfg.Log}
	if _, err := t.file.look(cfg.Now()); err != nil {
		return nil, err
	}
	t.ctx, t.end = context.WithCancel(context.Background())
	if cfg.Reload > 0 {
		// Stopped by Close, which waits for it.
		t.running.Go(t.watch)
	}
	return t, nil
}

// Close stops checking the file and waits for that. It may be called more than once.
func (t *Tokens) Close() {
	t.end()
	t.running.Wait()
}

func (t *Tokens) watch() {
	ticker := time.NewTicker(t.cfg.Reload)
	defer ticker.Stop()
	for {
		select {
		case <-t.ctx.Done():
			return
		case <-ticker.C:
		}
		taken, err := t.file.look(t.cfg.Now())
		switch {
		case err != nil:
			t.cfg.Log.Error("file of tokens refused; its previous contents stay in use", "file", t.cfg.File, "error", err)
		case taken:
			t.cfg.Log.Info("file of tokens reloaded", "file", t.cfg.File)
		}
		if t.cfg.Changed != nil && (taken || err != nil) {
			t.cfg.Changed(t.cfg.File, err)
		}
	}
}

func (t *Tokens) take(data []byte) error {
	var named bytes.Buffer
	for line := range strings.Lines(string(data)) {
		if strings.HasPrefix(strings.TrimLeft(line, " \t"), "sha256:") {
			named.WriteString(unnamed + " ")
		}
		named.WriteString(line)
	}
	set, err := parseKeys(t.cfg.File, named.Bytes())
	if err == nil {
		t.keys.Store(set)
	}
	return err
}

// Find reports whether a token is among those of the file and has not expired, and returns the
// name of its line, or "" if that has none. How long it takes does not depend on the token.
func (t *Tokens) Find(token string) (name string, ok bool) {
	if len(token) > maxKey {
		return "", false
	}
	presented := sha256.Sum256([]byte(token))
	var found apiKey
	for hash, key := range t.keys.Load().byHash {
		if subtle.ConstantTimeCompare(hash[:], presented[:]) == 1 {
			found = key
		}
	}
	if found.caller == nil || found.expired(t.cfg.Now) {
		return "", false
	}
	if name = found.caller.key; name == unnamed {
		name = ""
	}
	return name, true
}
