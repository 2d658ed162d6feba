package access

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"runtime"
	"sync"
	"sync/atomic"
	"time"
)

// Config configures a [Gate]. The zero value is a gate without any
// credentials: every resource with a [Rule] refuses, and credentials are
// ignored.
type Config struct {
	// KeysFile holds API keys: lines "name sha256:<64 hex digits>", followed by
	// "until:<date>" if the key expires, and # comments. At most 10,000 lines.
	// If empty, there are no API keys.
	KeysFile string
	// JWKSFile holds the issuer's key set (RFC 7517): RSA, EC and Ed25519 keys, and oct
	// keys, which are secrets, so that the file is a secret, too. Keys of other kinds
	// are ignored. If empty, there are no tokens.
	JWKSFile string
	// JWKSURL is where the key set is fetched from instead: an https URL, or an
	// http URL of a loopback address. Discovery is instead the URL of an issuer
	// whose discovery document says where it is (OpenID Connect Discovery 1.0).
	// Redirects are not followed. At most one of the three is not empty.
	JWKSURL, Discovery string
	// CAFile holds the authorities that must have signed the server's certificate, in
	// PEM. If empty, they are the system's roots.
	CAFile string
	// Refresh is how often the set is fetched again. If zero, it defaults to 5 min. A
	// token with an unknown kid causes an earlier fetch, at most once in 5 s.
	Refresh time.Duration
	// Issuer and Audience are what iss must be and aud must contain. If empty,
	// they are not checked.
	Issuer, Audience string
	// Algorithms that tokens may be signed with, of HS, RS, PS and ES with 256, 384
	// or 512, and EdDSA. If empty, those that the keys of the set are for.
	Algorithms []string
	// Leeway is how far clocks may differ. If zero, it defaults to 30 s; if
	// negative, there is none.
	Leeway time.Duration
	// Reload is how often the files are checked. If zero, it defaults to 5 s; if
	// negative, they are never checked.
	Reload time.Duration
	// Changed is called when a file has changed; err says why the previous contents stay in
	// use. If nil, it is not called.
	Changed func(file string, err error)
	// Log receives changed files and API keys that expire. If nil, nothing is logged.
	Log *slog.Logger
	// Now is the clock for expiry. If nil, it is time.Now.
	Now func() time.Time

	fetchGap, fetchTime time.Duration // for tests; 0 means those of the constants
}

// Gate identifies callers. All methods are safe for concurrent use.
type Gate struct {
	// Immutable after Open.
	cfg     Config
	allowed []*algorithm // of Config.Algorithms; nil means all
	now     func() time.Time
	files   []*watched         // those that exist
	remote  *remote            // if nil, the key set is a file, or there is none
	ctx     context.Context    // canceled by Close
	end     context.CancelFunc // cancels ctx
	running sync.WaitGroup     // goroutines that Close waits for

	checking checking // slots for signature checks

	// Owned by Open, then by the goroutine that checks the files.
	reminded reminded

	// Atomics. Written by Open, Inherit and the goroutines that check the files and
	// fetch the set, read by Identify. Nil if there is none, or it was not fetched yet.
	keys   atomic.Pointer[keySet]
	tokens atomic.Pointer[tokenSet]

	// Atomics. Counts, written where they happen, read by Stats.
	reloads, reloadErrors       atomic.Int64
	checks, refusals, fromTable atomic.Int64
}

// Credentials are the raw values of the fields X-API-Key and Authorization, or ""
// for a missing field. Duplicate says that one of them appeared more than once. The
// strings need to live only as long as the call of Identify.
type Credentials struct {
	APIKey, Authorization string
	Duplicate             bool
	// Client identifies the sender, by any number that represents an address: signatures
	// are checked for one client after the other.
	Client uint64
}

// Stats are the counters of a [Gate] since Open.
type Stats struct {
	APIKeys          int       // hashes in the key file
	NextExpiry       time.Time // when the next API key expires; zero if none does
	TokenKeys        int       // usable keys in the key set
	Reloads          int64     // changed files that were loaded
	ReloadErrors     int64     // changed files that were not, because they are broken
	SignatureChecks  int64     // signatures computed
	Refusals         int64     // refusals by Identify
	RepeatedRefusals int64     // of those, tokens that had been refused recently
	Crowded          int64     // of those, tokens that were not checked because too many waited
	Waiting          int       // tokens that wait now for their signature to be checked
	WaitingLimit     int       // how many may
	Remote           bool      // the key set is fetched
	Fetched          time.Time // when it was last fetched successfully; zero if never
	Fetches          int64     // attempts to fetch it
	FetchFailures    int64     // of those, the ones that failed
}

const (
	defaultLeeway = 30 * time.Second
	defaultReload = 5 * time.Second
	maxLeeway     = time.Hour // more is not clock skew but tokens that do not expire
)

// Open reads the files. A mistake in one is a [*FileError]. Later changes are
// loaded within Config.Reload; a file that became invalid changes nothing, which is
// logged.
func Open(cfg Config) (*Gate, error) {
	if cfg.Now == nil {
		cfg.Now = time.Now
	}
	if cfg.Leeway == 0 {
		cfg.Leeway = defaultLeeway
	}
	if cfg.Reload == 0 {
		cfg.Reload = defaultReload
	}
	if cfg.Log == nil {
		cfg.Log = slog.New(slog.DiscardHandler)
	}
	g := &Gate{
		cfg:      cfg,
		checking: checking{free: max(1, runtime.GOMAXPROCS(0)/2)},
		now:      cfg.Now,
	}
	g.ctx, g.end = context.WithCancel(context.Background())
	g.cfg.Leeway = max(0, cfg.Leeway)
	if g.cfg.Leeway > maxLeeway {
		return nil, fmt.Errorf("access: the leeway is %v, expected at most %v", cfg.Leeway, maxLeeway)
	}
	var err error
	if g.allowed, err = algorithmsNamed(cfg.Algorithms); err != nil {
		return nil, err
	}
	if cfg.KeysFile != "" {
		g.files = append(g.files, &watched{path: cfg.KeysFile, most: maxKeysFile, take: g.takeKeys, log: g.cfg.Log})
	}
	if cfg.JWKSFile != "" {
		g.files = append(g.files, &watched{path: cfg.JWKSFile, most: maxJWKSFile, take: g.takeJWKS, log: g.cfg.Log})
	}
	if cfg.JWKSURL != "" || cfg.Discovery != "" {
		if g.remote, err = newRemote(&g.cfg, g.allowed); err != nil {
			return nil, err
		}
		if g.cfg.Issuer == "" {
			g.cfg.Issuer = cfg.Discovery
		}
	}
	for _, f := range g.files {
		if _, err := f.look(g.now()); err != nil {
			return nil, err
		}
	}
	g.remind()
	if len(g.files) > 0 && cfg.Reload > 0 {
		// Stopped by Close, which waits for it.
		g.running.Go(g.watch)
	}
	if g.remote != nil {
		// Stopped by Close, which waits for it.
		g.running.Go(func() { g.remote.run(g.ctx, g.takeFetched) })
	}
	return g, nil
}

// Close stops checking the files and fetching, and waits for that. Identify continues to use
// what was read last. It may be called more than once.
func (g *Gate) Close() {
	g.end()
	g.running.Wait()
}

// takeFetched starts using a fetched key set. Known tokens are checked again.
func (g *Gate) takeFetched(keys []*tokenKey) { g.tokens.Store(newTokenSet(keys)) }

// Inherit lets a gate that has not fetched its key set yet begin with the one that another
// gate, which may be closed, has fetched from the same URL.
func (g *Gate) Inherit(from *Gate) {
	if g.remote == nil || from == nil || from.remote == nil || g.remote.url != from.remote.url || g.remote.caFile != from.remote.caFile {
		return
	}
	from.remote.mu.Lock()
	data := from.remote.data
	from.remote.mu.Unlock()
	if data == nil {
		return
	}
	keys, err := parseJWKS(g.remote.url, data, g.allowed)
	if err == nil && g.tokens.CompareAndSwap(nil, newTokenSet(keys)) {
		g.remote.fetched.CompareAndSwap(0, from.remote.fetched.Load())
		g.remote.mu.Lock()
		defer g.remote.mu.Unlock()
		if g.remote.data == nil { // for the gate that inherits from this one
			g.remote.data = data
		}
	}
}

// Trouble returns why no token can be checked yet, or "" if tokens can be.
func (g *Gate) Trouble() string {
	if g.remote == nil || g.tokens.Load() != nil {
		return ""
	}
	text := "the keys that sign tokens have not been fetched yet"
	if why := g.remote.trouble.Load(); why != nil {
		text += ": " + *why
	}
	return text
}

// Stats returns the counters.
func (g *Gate) Stats() Stats {
	s := Stats{
		Reloads: g.reloads.Load(), ReloadErrors: g.reloadErrors.Load(),
		SignatureChecks: g.checks.Load(), Refusals: g.refusals.Load(), RepeatedRefusals: g.fromTable.Load(),
		Crowded: g.checking.crowded(), Waiting: g.checking.waiting(), WaitingLimit: maxChecking,
	}
	if k := g.keys.Load(); k != nil {
		s.APIKeys, s.NextExpiry = len(k.byHash), k.nextExpiry(g.now())
	}
	if t := g.tokens.Load(); t != nil {
		s.TokenKeys = len(t.keys)
	}
	if r := g.remote; r != nil {
		s.Remote, s.Fetches, s.FetchFailures = true, r.fetches.Load(), r.failures.Load()
		if at := r.fetched.Load(); at != 0 {
			s.Fetched = time.Unix(0, at)
		}
	}
	return s
}

// Identify returns the caller with these credentials. (nil, nil) means that there are none. A token
// that was not seen recently may wait for the signature checks of others, and one with an unknown kid
// for the key set to be fetched, until ctx ends. An API key, or a token that was seen recently, costs
// no allocation. The results are shared and must not be changed.
func (g *Gate) Identify(ctx context.Context, c Credentials) (*Caller, *Refusal) {
	caller, refusal, _ := g.identify(ctx, c)
	return g.counted(caller, refusal)
}

// IdentifyAtOnce is Identify for callers that must not block, such as event loops. ok
// is false for a token that was not seen recently, whose signature takes 50 to 240 us
// to check; then Identify must be called, and nothing has been counted.
func (g *Gate) IdentifyAtOnce(c Credentials) (caller *Caller, refusal *Refusal, ok bool) {
	if caller, refusal, ok = g.identify(atOnce, c); !ok {
		return nil, nil, false
	}
	caller, refusal = g.counted(caller, refusal)
	return caller, refusal, true
}

func (g *Gate) counted(caller *Caller, refusal *Refusal) (*Caller, *Refusal) {
	if refusal != nil {
		g.refusals.Add(1)
		return nil, refusal
	}
	return caller, nil
}

// atOnce is the context of a caller that must not block: none.
var atOnce context.Context

// identify returns false if it would have to check a signature and may not, because ctx is
// nil.
func (g *Gate) identify(ctx context.Context, c Credentials) (*Caller, *Refusal, bool) {
	if len(g.files) == 0 && g.remote == nil {
		return nil, nil, true // there are no credentials to compare with: those sent are for another program
	}
	if c.Duplicate {
		return nil, refusedDuplicate, true
	}
	var caller *Caller
	if c.APIKey != "" {
		keys := g.keys.Load()
		if keys == nil {
			return nil, refusedNoKeys, true
		}
		var refusal *Refusal
		if caller, refusal = keys.find(c.APIKey, g.now); refusal != nil {
			return nil, refusal, true
		}
	}
	if c.Authorization == "" {
		return caller, nil, true
	}
	tokens := g.tokens.Load()
	if tokens == nil && g.remote != nil {
		return nil, refusedNoSet, true
	}
	if tokens == nil {
		return nil, refusedNoTokens, true
	}
	return g.byAuthorization(ctx, tokens, c)
}

// byAuthorization finds the field's value among those seen recently, or reads the
// token in it.
func (g *Gate) byAuthorization(ctx context.Context, tokens *tokenSet, c Credentials) (*Caller, *Refusal, bool) {
	now := g.now()
	if e := tokens.find(c.Authorization, now); e != nil {
		caller, refusal := g.seenLately(e)
		return caller, refusal, true
	}
	token, refusal := bearer(c.Authorization)
	if refusal != nil {
		return nil, refusal, true
	}
	if ctx == nil {
		return nil, nil, false
	}
	caller, refusal := g.checkOnce(ctx, tokens, token, c, g.remote == nil)
	if refusal != refusedUnknown || g.remote == nil {
		return caller, refusal, true
	}
	// The issuer may have begun to sign with another key.
	switch err := g.remote.await(ctx, c.Client); {
	case errors.Is(err, errCrowded):
		return nil, refusedCrowded, true
	case err != nil:
		return nil, refusedLate, true
	}
	caller, refusal = g.checkOnce(ctx, g.tokens.Load(), token, c, true)
	return caller, refusal, true
}

// checkOnce checks a token unless another goroutine has done so meanwhile. An unknown kid is
// remembered only at the end: other requests with the same token wait for the fetch as well.
func (g *Gate) checkOnce(ctx context.Context, tokens *tokenSet, token string, c Credentials, last bool) (*Caller, *Refusal) {
	// A slot here is one signature check; see the cost in the package's doc.
	switch err := g.checking.take(ctx, c.Client); {
	case errors.Is(err, errCrowded):
		return nil, refusedCrowded
	case err != nil:
		return nil, refusedLate
	}
	defer g.checking.give()
	now := g.now()
	if e := tokens.find(c.Authorization, now); e != nil { // another goroutine has checked it meanwhile
		return g.seenLately(e)
	}
	v := g.check(tokens, token, now)
	if v.refusal != refusedUnknown || last {
		tokens.keep(c.Authorization, v, now)
	}
	return v.caller, v.refusal
}

func (g *Gate) seenLately(e *entry) (*Caller, *Refusal) {
	if e.refusal != nil {
		g.fromTable.Add(1)
	}
	return e.caller, e.refusal
}
