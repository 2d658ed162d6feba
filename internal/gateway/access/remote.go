package access

import (
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/netip"
	"net/url"
	"strings"
	"sync"
	"sync/atomic"
	"time"
)

// Bounds of a key set that is fetched.
const (
	defaultRefresh = 5 * time.Minute
	maxDiscovery   = 64 << 10         // bytes of a discovery document
	fetchTime      = 10 * time.Second // of a fetch, the discovery included
	fetchGap       = 5 * time.Second  // from the start of a fetch to that of the next, for any reason
	maxFetchPause  = time.Minute      // between two attempts after failures
	tellEvery      = time.Minute      // minimum time between logged failures

	// Bounds of the tokens with an unknown kid that wait for a fetch, in total and per
	// client.
	maxAwaiting       = 2048
	maxAwaitingClient = 512
	awaitTime         = 10 * time.Second
)

// remote is a key set that is fetched from its issuer.
type remote struct {
	// Immutable after newRemote.
	url     string // of the set; with an issuer, of the discovery document
	issuer  string // the required issuer of the discovery document; "" if there is none
	caFile  string // "" means the system's roots
	refresh time.Duration
	gap     time.Duration // from the start of a fetch to that of the next
	time    time.Duration // of a fetch
	allowed []*algorithm
	log     *slog.Logger
	now     func() time.Time
	wanted  chan struct{} // a token with an unknown kid waits; holds one

	// Owned by the goroutine that fetches.
	failed int       // attempts since the last success
	told   time.Time // when a failure was logged

	mu sync.Mutex
	// Guarded by mu.
	data     []byte        // of the set in use
	round    chan struct{} // closed after the next fetch that begins
	awaiting int
	clients  map[uint64]int // of awaiting

	// Atomics. Written by the goroutine that fetches.
	fetched           atomic.Int64 // when a fetch succeeded last, in Unix nanoseconds; 0 if never
	fetches, failures atomic.Int64
	trouble           atomic.Pointer[string] // why the last fetch failed; nil if it did not
}

func newRemote(cfg *Config, allowed []*algorithm) (*remote, error) {
	r := &remote{
		url: cfg.JWKSURL, caFile: cfg.CAFile, refresh: cfg.Refresh, gap: cmp.Or(cfg.fetchGap, fetchGap), time: cmp.Or(cfg.fetchTime, fetchTime), allowed: allowed, log: cfg.Log, now: cfg.Now,
		wanted: make(chan struct{}, 1), round: make(chan struct{}), clients: make(map[uint64]int),
	}
	if r.refresh <= 0 {
		r.refresh = defaultRefresh
	}
	if cfg.Discovery != "" {
		r.issuer = cfg.Discovery
		r.url = strings.TrimSuffix(cfg.Discovery, "/") + "/.well-known/openid-configuration"
	}
	if err := trustedURL(r.url); err != nil {
		return nil, fmt.Errorf("access: %w", err)
	}
	if _, err := r.roots(); err != nil {
		return nil, err
	}
	return r, nil
}

// trustedURL refuses URLs whose answer an attacker on the network path could
// forge.
func trustedURL(text string) error {
	u, err := url.Parse(text)
	switch {
	case err != nil:
		return fmt.Errorf("%q is not a URL", text)
	case u.User != nil:
		return fmt.Errorf("the URL of host %q holds a name or password, which logs would show", u.Host)
	case u.Host == "" || u.Fragment != "" || u.Opaque != "":
		return fmt.Errorf("%q has no host or has a fragment, expected https://host/path", text)
	case u.Scheme == "https", u.Scheme == "http" && isLoopback(u.Hostname()):
		return nil
	}
	return fmt.Errorf("%q is not https, expected https://, or http:// for a loopback address", text)
}

func isLoopback(host string) bool {
	a, err := netip.ParseAddr(host)
	return host == "localhost" || err == nil && a.IsLoopback()
}

// run fetches until ctx ends: immediately, at each refresh, and when a token has an unknown
// kid.
func (r *remote) run(ctx context.Context, take func(keys []*tokenKey)) {
	var begun time.Time
	for pause := time.Duration(0); ; pause = r.pause() {
		timer := time.NewTimer(pause)
		select {
		case <-ctx.Done():
		case <-timer.C:
		case <-r.wanted:
		}
		timer.Stop()
		if rest := r.gap - time.Since(begun); !begun.IsZero() && rest > 0 {
			timer = time.NewTimer(rest)
			select {
			case <-ctx.Done():
			case <-timer.C:
			}
			timer.Stop()
		}
		if ctx.Err() != nil {
			return
		}
		begun = time.Now()
		r.mu.Lock()
		round, before := r.round, r.data
		r.round = make(chan struct{})
		r.mu.Unlock()
		data, keys, err := r.fetch(ctx, before)
		if err == nil && keys != nil {
			r.mu.Lock()
			r.data = data
			r.mu.Unlock()
			take(keys)
		}
		if ctx.Err() == nil {
			r.note(err, keys != nil)
		}
		close(round)
	}
}

// pause is the time to the next scheduled fetch.
func (r *remote) pause() time.Duration {
	if r.failed == 0 {
		return r.refresh
	}
	return min(r.refresh, maxFetchPause, r.gap<<min(r.failed-1, 10))
}

// note counts a fetch and logs changes.
func (r *remote) note(err error, changed bool) {
	r.fetches.Add(1)
	if err == nil {
		r.fetched.Store(r.now().UnixNano())
		if r.failed > 0 || changed {
			r.log.Info("keys of tokens fetched", "url", r.url, "changed", changed)
		}
		r.failed = 0
		r.trouble.Store(nil)
		return
	}
	r.failures.Add(1)
	r.failed++
	text := err.Error()
	r.trouble.Store(&text)
	if r.failed == 1 || time.Since(r.told) >= tellEvery {
		r.told = time.Now()
		r.log.Error("keys of tokens cannot be fetched; the previous ones stay in use", "url", r.url, "error", err, "failures", r.failed)
	}
}

// await waits for a fetch that begins after the call, because a token has an unknown kid. An
// error is one of the context, or errCrowded.
func (r *remote) await(ctx context.Context, client uint64) error {
	r.mu.Lock()
	if r.awaiting >= maxAwaiting || r.clients[client] >= maxAwaitingClient {
		r.mu.Unlock()
		return errCrowded
	}
	r.awaiting++
	r.clients[client]++
	round := r.round
	r.mu.Unlock()
	defer func() {
		r.mu.Lock()
		defer r.mu.Unlock()
		r.awaiting--
		if r.clients[client]--; r.clients[client] == 0 {
			delete(r.clients, client)
		}
	}()
	select {
	case r.wanted <- struct{}{}:
	default: // a fetch is already requested
	}
	timer := time.NewTimer(awaitTime)
	defer timer.Stop()
	select {
	case <-round:
		return nil
	case <-timer.C:
		return errCrowded
	case <-ctx.Done():
		return ctx.Err()
	}
}

// fetch returns the key set, or no keys if it has not changed.
func (r *remote) fetch(ctx context.Context, before []byte) (data []byte, keys []*tokenKey, err error) {
	ctx, cancel := context.WithTimeout(ctx, r.time)
	defer cancel()
	client, err := r.client()
	if err != nil {
		return nil, nil, err
	}
	defer client.CloseIdleConnections()
	from := r.url
	if r.issuer != "" {
		if data, err = get(ctx, client, r.url, maxDiscovery); err != nil {
			return nil, nil, err
		}
		if from, err = r.discovered(data); err != nil {
			return nil, nil, err
		}
	}
	if data, err = get(ctx, client, from, maxJWKSFile); err != nil {
		return nil, nil, err
	}
	if before != nil && bytes.Equal(data, before) {
		return nil, nil, nil
	}
	if keys, err = parseJWKS(from, data, r.allowed); err != nil {
		return nil, nil, err
	}
	return data, keys, nil
}

// discovered returns the address of the key set in a discovery document (OpenID Connect
// Discovery 1.0, section 4). The document must be that of the configured issuer.
func (r *remote) discovered(data []byte) (from string, err error) {
	var issuer string
	err = eachMember(data, func(name string, value json.RawMessage, _ int64) error {
		switch name {
		case "issuer":
			return wrapMember(name, json.Unmarshal(value, &issuer))
		case "jwks_uri":
			return wrapMember(name, json.Unmarshal(value, &from))
		}
		return nil
	})
	switch {
	case err != nil:
		return "", fmt.Errorf("%s: not a discovery document: %w", r.url, err)
	case issuer != r.issuer:
		return "", fmt.Errorf("%s: the document is that of the issuer %.200q, expected %q", r.url, issuer, r.issuer)
	case from == "":
		return "", fmt.Errorf("%s: jwks_uri is missing", r.url)
	}
	if err := trustedURL(from); err != nil {
		return "", fmt.Errorf("%s: jwks_uri: %w", r.url, err)
	}
	if strings.HasPrefix(r.url, "https:") && !strings.HasPrefix(from, "https:") {
		return "", fmt.Errorf("%s: jwks_uri: %w", r.url, errors.New("not https, although the document itself was fetched with it"))
	}
	return from, nil
}
