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

// Options are what a program that embeds a gateway gives it besides the
// configuration. The zero value is usable.
type Options struct {
	// Logger gets what operators should know. Default: discarded.
	Logger *slog.Logger
	// Canary is the time between two samples of the canary, which reads a
	// document that was just answered from the cache again from the database,
	// and counts and reports it if it was older than promised. 0 means 1 s,
	// negative: no canary.
	Canary time.Duration
	// Listeners are used instead of binding the addresses of the configuration, by
	// what they are for, such as [ListenHTTP]. The gateway owns them. The rules for
	// addresses that other machines can reach hold for where they are bound.
	Listeners map[string][]net.Listener
	// BeforeAccept is called by Start when everything is up, before the first
	// connection is accepted, with all listeners; connections wait in the kernel's
	// queues meanwhile. It may not keep the listeners. Its error ends the start.
	BeforeAccept func(context.Context, *Gateway, map[string][]net.Listener) error
	// Succeeds says that this gateway takes over from a running one, which may have the
	// file of the disk tier open: then it begins without the tier and opens it as soon as
	// the other lets it go.
	Succeeds bool
	// NoDefaultListeners leaves out the listeners for HTTP and for operators unless the
	// configuration or Listeners names them: a program that uses [Gateway.Get] or
	// [Gateway.Handler] may need none. If false, they are at their default addresses. A
	// configuration that was read from a file names both: set Frontends.HTTP to nil and
	// Admin.Address to "".
	NoDefaultListeners bool
	// Load reads the configuration again and looks whether it is valid, as
	// [config.Load] does, for [Gateway.ReloadFile] and the admin
	// listener's /reload. Nil: neither is there.
	Load func() (*config.Config, error)
	// OnReload is told of a configuration that was taken over, with its defaults. It must not
	// call Reload.
	OnReload func(*config.Config)

	diskRead func()            // tests make the disk slow with it, see export_test.go
	record   func(audit.Event) // the gateway's audit log
}

// Gateway is a running or startable gateway. Call New, Start, and then Shutdown,
// which also tidies up after a Start that failed.
type Gateway struct {
	// Immutable after New. config is that of the start: for what a reload does not change.
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
	before    func(context.Context, *Gateway, map[string][]net.Listener) error // nil: nothing

	listens  listening
	succeeds bool   // Options.Succeeds
	diskRead func() // Options.diskRead
	memory   *memory.Tier
	bounds   *sharedBounds

	load        func() (*config.Config, error) // Options.Load
	onReload    func(*config.Config)           // Options.OnReload
	retireAfter time.Duration                  // how long what a reload replaced is kept

	// reloading is held by whoever replaces live, or tells it what the database looks like.
	reloading sync.Mutex
	// live is what answers. Atomic: written by New and with reloading held, read by all.
	live atomic.Pointer[generation]

	// Owned by Start, and by Shutdown after it: those that nobody serves yet.
	listeners map[string][]net.Listener
	serves    map[net.Listener]config.Listener // what each is for

	// Immutable after Start.
	addrs     map[string][]net.Addr // of listeners, by name
	serving   bool                  // the frontends have begun to serve
	admin     *admin.Server
	adminAddr net.Addr

	following bool           // Start came to its end
	followed  chan struct{}  // closed when the stream's goroutine has ended
	watched   chan struct{}  // closed when the canary's has
	tasks     sync.WaitGroup // the other goroutines of the gateway; Shutdown waits
	failed    chan error     // what ends the gateway besides Shutdown, at most one
	once      sync.Once      // of Shutdown

	// Atomics. Written by the goroutine that connects, read by readiness.
	waiting atomic.Pointer[string] // why the database is not reached

	// Atomics. Written by Start, read by whoever embeds the gateway; nil until then.
	mounted atomic.Pointer[httpfront.Server]

	// Atomics. Written by whoever opens the disk tier, read by all; nil until then.
	diskTier atomic.Pointer[disk.Tier]

	// Guarded by purging.
	purging    sync.Mutex
	unattached map[purge]struct{} // what a disk tier that is not open yet must drop
	warming    warmUp
}

// New builds a gateway. It reads the files of credentials, and opens nothing else.
// The error is a [config.Errors] if the configuration is wrong. What it returns must
// be ended with Shutdown, even if it was never started.
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

// Start binds the listeners and begins to serve. A database that is not there is
// waited for in the background; until it is, documents are answered with 503 and
// /ready says why. A database that does not fit the configuration is an error.
// The context bounds the start only; when it ends first, its error is returned.
func (g *Gateway) Start(ctx context.Context) error {
	// One attempt before anything is served, so that a wrong configuration
	// is told at once.
	c, err := connectWithin(ctx, connectPatience, g.config, g.log)
	if err != nil && ctx.Err() != nil {
		// A wait for a lock that was cut short looks like a database out of
		// reach, but the caller has given up.
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

// adopt tells everybody what the database looks like.
func (g *Gateway) adopt(c *connection) error {
	// What a reload makes later asks the origin itself.
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

// AdminAddr returns the address of the admin listener, nil if there is none. Call it after Start.
func (g *Gateway) AdminAddr() net.Addr { return g.adminAddr }

// Stats returns a moment's view of the cache.
func (g *Gateway) Stats() cache.Stats { return g.cache.Stats() }

// Wait returns when the gateway cannot go on, with the reason, or nil after
// Shutdown.
func (g *Gateway) Wait() error {
	select {
	case err := <-g.failed:
		return err
	case <-g.ctx.Done():
		return nil
	}
}

// Shutdown drains the gateway: it stops accepting, lets requests under way end,
// and then stops loads and stream. When ctx ends first, what is left is cut off
// and the context's error returned.
func (g *Gateway) Shutdown(ctx context.Context) error {
	var err error
	g.once.Do(func() {
		errs := []error{g.closeListeners(), g.closeDisk(ctx), g.stopFrontends(ctx)}
		g.bounds.workers.Close()
		g.cancel()
		g.reloading.Lock() // none is under way from here on
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
		// Last, so that operators can watch the drain.
		short, cancel := context.WithTimeout(context.WithoutCancel(ctx), time.Second)
		errs = append(errs, g.ShutdownAdmin(short), g.now().surface.closeAudit(context.WithoutCancel(ctx)))
		cancel()
		g.tasks.Wait()
		err = errors.Join(errs...)
	})
	return err
}
