package gateway

import (
	"context"
	"errors"
	"fmt"
	"log/slog"
	"maps"
	"net"
	"slices"
	"sync"
	"sync/atomic"
	"time"

	"github.com/prometheus/client_golang/prometheus"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/admin"
	"github.com/slipstream-go/slipstream/internal/gateway/audit"
	"github.com/slipstream-go/slipstream/internal/gateway/frontend/httpfront"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/disk"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/memory"
)

// Options are the settings of a gateway that are not in its configuration. The
// zero value is usable.
type Options struct {
	// Logger receives what operators should know. If nil, it is discarded.
	Logger *slog.Logger
	// Canary is the time between two samples of the canary, which rereads from
	// the database a document that was just served from the cache, and counts
	// and reports it if it was older than promised. If zero, it defaults to 1 s;
	// if negative, there is no canary.
	Canary time.Duration
	// Listeners are used instead of binding the addresses of the configuration, by
	// their purpose, such as [ListenHTTP]. The gateway owns them. The rules for
	// addresses that other machines can reach apply to the addresses that they are
	// bound to.
	Listeners map[string][]net.Listener
	// BeforeAccept is called by Start when everything runs, before the first
	// connection is accepted, with all listeners; connections wait in the kernel's
	// queues meanwhile. It must not retain the listeners. If it returns an error,
	// Start fails.
	BeforeAccept func(context.Context, *Gateway, map[string][]net.Listener) error
	// Succeeds says that this gateway takes over from a running one, which may have the
	// file of the disk tier open: then it starts without the tier and opens it as soon as
	// the other releases it.
	Succeeds bool
	// NoDefaultListeners omits the listeners for HTTP and for operators unless the
	// configuration or Listeners names them: a program that uses [Gateway.Get] or
	// [Gateway.Handler] may need none. If false, they are at their default addresses. A
	// configuration that was read from a file names both: set Frontends.HTTP to nil and
	// Admin.Address to "".
	NoDefaultListeners bool
	// Load rereads and validates the configuration, as [config.Load] does, for
	// [Gateway.ReloadFile] and the admin listener's /reload. If nil, neither is
	// available.
	Load func() (*config.Config, error)
	// OnReload is called with each configuration that was applied, including its defaults. It
	// must not call Reload. If nil, it is not called.
	OnReload func(*config.Config)

	diskRead func()            // tests make the disk slow with it, see export_test.go
	record   func(audit.Event) // the gateway's audit log
}

// Gateway is a running or startable gateway. Call New, Start, and then Shutdown,
// which also cleans up after a Start that failed.
type Gateway struct {
	// Immutable after New. config is that of the start, for settings that a reload does not
	// change.
	config *config.Config
	log    *slog.Logger
	cache  *cache.Cache
	// frontends are those that are configured, in the order of protocols.
	frontends []opened
	http      *httpfront.Server // the one of frontends
	metrics   *prometheus.Registry
	canary    *canary
	origin    *lateOrigin
	ctx       context.Context // ends with Shutdown
	cancel    context.CancelFunc
	before    func(context.Context, *Gateway, map[string][]net.Listener) error // may be nil

	listens  listening
	succeeds bool   // Options.Succeeds
	diskRead func() // Options.diskRead
	memory   *memory.Tier
	bounds   *sharedBounds

	load        func() (*config.Config, error) // Options.Load
	onReload    func(*config.Config)           // Options.OnReload
	retireAfter time.Duration                  // how long a replaced generation is kept

	// reloading is held to replace live, or to pass it the shape of the database.
	reloading sync.Mutex
	// live is the generation that serves requests. Atomic: written by New and with
	// reloading held, read by all.
	live atomic.Pointer[generation]

	// Owned by Start, and by Shutdown after it: those that are not served yet.
	listeners map[string][]net.Listener
	serves    map[net.Listener]config.Listener // the configuration of each

	// Immutable after Start.
	addrs     map[string][]net.Addr // of listeners, by name
	serving   bool                  // the frontends have begun to serve
	admin     *admin.Server
	adminAddr net.Addr

	following bool           // Start has succeeded
	followed  chan struct{}  // closed when the stream's goroutine has ended
	watched   chan struct{}  // closed when the canary's has
	tasks     sync.WaitGroup // the other goroutines of the gateway; Shutdown waits
	failed    chan error     // an error that ends the gateway, at most one
	once      sync.Once      // of Shutdown

	// Atomics. Written by the goroutine that connects, read by readiness.
	waiting atomic.Pointer[string] // why the database is not reached

	// Atomics. Written by Start, read by the program that embeds the gateway; nil until
	// then.
	mounted atomic.Pointer[httpfront.Server]

	// Atomics. Written by the goroutine that opens the disk tier, read by all; nil
	// until then.
	diskTier atomic.Pointer[disk.Tier]

	// Guarded by purging.
	purging    sync.Mutex
	unattached map[purge]struct{} // what a disk tier that is not open yet must drop
	warming    warmUp
}

// New builds a gateway. It reads the files of credentials, and opens nothing else.
// The error is a [config.Errors] if the configuration is wrong. Call Shutdown on the
// result, even if it was never started.
func New(cfg *config.Config, opts Options) (*Gateway, error) {
	listens := listening{opts.NoDefaultListeners, len(opts.Listeners[ListenHTTP]) > 0, len(opts.Listeners[ListenAdmin]) > 0}
	full, err := listens.complete(cfg)
	if err != nil {
		return nil, err
	}
	g := &Gateway{config: &full, listens: listens, log: opts.Logger, origin: &lateOrigin{}, before: opts.BeforeAccept, succeeds: opts.Succeeds, diskRead: opts.diskRead,
		load: opts.Load, onReload: opts.OnReload, retireAfter: longestRequest(&full), listeners: maps.Clone(opts.Listeners),
		followed: make(chan struct{}), watched: make(chan struct{}), failed: make(chan error, 1)}
	if g.log == nil {
		g.log = slog.New(slog.DiscardHandler)
	}
	for _, w := range full.Warnings {
		g.log.Warn(w)
	}
	g.bounds = newSharedBounds(&full, openFiles(), g.log)
	tier, err := memory.New(full.Tiers.Memory)
	if err != nil {
		return nil, err
	}
	g.memory = tier
	var resources []cache.Resource
	for _, r := range full.Resources {
		resources = append(resources, cacheResource(r))
	}
	settings := cache.Config{
		Resources: resources,
		Origin:    g.origin,
		Tiers:     []cache.Tier{tier},
		Clock:     bootTime,
		StoreOnly: full.Tiers.Disk.Stay,

		MaxResources: len(resources) + roomForResources,
		LoadLag:      loadLag(&full),
	}
	if wakes(&full) {
		settings.Wake = g.origin.wake
	}
	g.cache, err = cache.New(settings)
	if err != nil {
		return nil, err
	}
	opts.Logger, opts.record = g.log, g.record
	first := &generation{config: &full, ids: firstIDs(len(full.Resources))}
	if first.surface, err = newSurface(&full, opts); err != nil {
		return nil, err
	}
	if err = g.openFrontends(first); err != nil {
		return nil, errors.Join(err, first.surface.close(context.Background()))
	}
	g.live.Store(first)
	g.canary = newCanary(canaryConfig{
		Interval: opts.Canary, Cache: g.cache, Origin: g.origin, Path: g.path,
		Resource: func(id cache.ResourceID) *config.Resource { return g.now().of(id) }, Log: g.log,
		Purge: func(ctx context.Context, key cache.Key) string { return g.purge(ctx, purge{key: key}) },
	})
	g.metrics = newMetrics(g)
	g.ctx, g.cancel = context.WithCancel(context.Background())
	return g, nil
}

func cacheResource(r config.Resource) cache.Resource {
	c := cache.Resource{
		Name:        r.Name,
		Freshness:   r.Freshness,
		NoPromise:   r.NoPromise,
		MissingTTL:  r.MissingTTL,
		MaxBatch:    r.Load.Batch,
		MaxLoads:    r.Load.Concurrency,
		MaxQueue:    r.Load.Queue,
		LoadTimeout: r.Load.Timeout,
	}
	switch r.OnStale {
	case config.Stale:
		c.Policy = cache.ServeStale
	case config.Unavailable:
		c.Policy = cache.Unavailable
	case config.Reload:
		c.Policy = cache.Reload
	case config.Verify:
		c.Policy = cache.Verify
	}
	return c
}

// Start binds the listeners and begins to serve. If the database cannot be reached,
// Start keeps trying in the background; until it can, documents are answered with
// 503 and /ready says why. A database that does not match the configuration is an
// error. The context only bounds the start; if it ends first, its error is
// returned.
func (g *Gateway) Start(ctx context.Context) error {
	// One attempt is made before anything is served, so that a wrong configuration
	// is reported immediately.
	c, err := connectWithin(ctx, connectPatience, g.config, g.log)
	if err != nil && ctx.Err() != nil {
		// An interrupted wait for a lock looks like an unreachable database, but
		// the caller has given up.
		return fmt.Errorf("start: %w: %w", context.Cause(ctx), err)
	}
	if err != nil && !errors.Is(err, cache.ErrUnavailable) {
		return err
	}
	if c != nil {
		if err := g.adopt(c); err != nil {
			return err
		}
	} else {
		why := err.Error()
		g.waiting.Store(&why)
		g.log.Warn("the database cannot be reached; retrying", "error", err)
	}
	if err := g.openDisk(); err != nil {
		return err
	}
	if err := g.bind(); err != nil {
		return err
	}
	g.following = true
	// Ends with the context of the gateway; Shutdown waits for it.
	go func() {
		defer close(g.followed)
		if err := g.follow(c); err != nil && g.ctx.Err() == nil {
			g.failed <- err
		}
	}()
	// Ends with the context of the gateway; Shutdown waits for it.
	go func() {
		defer close(g.watched)
		g.canary.run(g.ctx)
	}()
	if g.before != nil {
		if err := g.before(ctx, g, g.listeners); err != nil {
			return err
		}
	}
	return g.serve()
}

// adopt passes the shape of the database to all parts that need it.
func (g *Gateway) adopt(c *connection) error {
	// Generations that a later reload makes query the origin themselves.
	g.reloading.Lock()
	defer g.reloading.Unlock()
	now := g.now()
	for i, id := range now.ids {
		columns := c.database.KeyColumns(int(id))
		if err := g.setColumns(id, columns); err != nil {
			return errors.Join(fmt.Errorf("resource %s: %w", now.config.Resources[i].Name, err), c.database.Close())
		}
	}
	for _, w := range c.database.Warnings() {
		g.log.Warn(w)
	}
	g.origin.reached.Store(c)
	g.waiting.Store(nil)
	return nil
}

// follow connects if that has not been done, and then follows the stream.
func (g *Gateway) follow(c *connection) error {
	if c == nil {
		var err error
		if c, err = g.reach(g.ctx); err != nil {
			return err
		}
		if err := g.adopt(c); err != nil {
			return err
		}
		g.log.Info("the database was reached")
	}
	return c.stream.Run(g.ctx, g.cache)
}

// Addrs returns the addresses that the listeners of a name are bound to, such as
// [ListenHTTP], in the order of the configuration. Call it after Start.
func (g *Gateway) Addrs(name string) []net.Addr { return slices.Clone(g.addrs[name]) }

// AdminAddr returns the address of the admin listener, or nil if there is none. Call it after Start.
func (g *Gateway) AdminAddr() net.Addr { return g.adminAddr }

// Stats returns a snapshot of the cache's counters.
func (g *Gateway) Stats() cache.Stats { return g.cache.Stats() }

// Wait returns the reason when the gateway cannot continue, or nil after Shutdown.
func (g *Gateway) Wait() error {
	select {
	case err := <-g.failed:
		return err
	case <-g.ctx.Done():
		return nil
	}
}

// Shutdown drains the gateway: it stops accepting, waits for requests in flight,
// and then stops loads and the stream. If ctx ends first, the rest is cut off and
// the context's error is returned.
func (g *Gateway) Shutdown(ctx context.Context) error {
	var err error
	g.once.Do(func() {
		errs := []error{g.closeListeners(), g.closeDisk(ctx), g.stopFrontends(ctx)}
		g.bounds.workers.Close()
		g.cancel()
		g.reloading.Lock() // no reload is in progress from here on
		//lint:ignore SA2001 it is waited for, nothing else
		g.reloading.Unlock()
		if g.following {
			<-g.followed
			<-g.watched
		}
		errs = append(errs, g.cache.Close(), g.now().surface.closeServing(ctx))
		if c := g.origin.reached.Load(); c != nil {
			errs = append(errs, c.database.Close())
		}
		// The admin listener is closed last, so that operators can watch the
		// drain.
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		errs = append(errs, g.ShutdownAdmin(short), g.now().surface.closeAudit(context.WithoutCancel(ctx)))
		cancel()
		g.tasks.Wait()
		err = errors.Join(errs...)
	})
	return err
}
