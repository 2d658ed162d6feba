package gateway

import (
	"context"
	"errors"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/slipstream-go/slipstream/cache"
	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/gateway/resource"
	"github.com/slipstream-go/slipstream/internal/gateway/audit"
	"github.com/slipstream-go/slipstream/internal/gateway/origin"
)

// This file applies another configuration while the gateway serves: see
// docs/decisions/0010-hot-reload.md.

// Reloaded says what a reload has changed.
type Reloaded struct {
	// Changes are the keys whose values differ from the previous ones.
	Changes []config.Change
	// Warnings are what the operator should know, in sentences.
	Warnings []string
}

// RestartError says that a configuration differs in settings that only a restart can change.
// Nothing was changed.
type RestartError struct {
	Changes []config.Change // those that need it
}

// Error implements error.
func (e *RestartError) Error() string {
	var keys []string
	for _, c := range e.Changes {
		keys = append(keys, c.Key)
	}
	return "these keys take effect only with a restart, so nothing was changed: " + strings.Join(keys, ", ")
}

// roomForResources is how many resources may be added or changed between two starts, at
// 8 bytes for each possible one, and 2 KiB for each actual one.
const roomForResources = 4096

// Times of a reload.
const (
	// takeOver is how long the stream may take to report on new resources: its next poll
	// or two.
	takeOver = 5 * time.Second
	// straggle is how much longer than its time limit a request may use the generation
	// that it began with.
	straggle = 5 * time.Second
)

// Difference returns what a reload with the configuration would change.
func (g *Gateway) Difference(cfg *config.Config) ([]config.Change, error) {
	full, err := g.listens.complete(cfg)
	if err != nil {
		return nil, err
	}
	return g.now().difference(&full), nil
}

// difference returns what a reload with a valid configuration would change.
func (n *generation) difference(full *config.Config) []config.Change {
	changes := config.Difference(n.config, full)
	if old, now := n.config.Origin.Dir, full.Origin.Dir; old != now {
		changes = append(changes, config.Change{Key: "the directory of the file", Old: old, New: now, Effect: config.AtRestart})
	}
	return changes
}

// Reload applies the configuration, completely or not at all. Resources whose definition is
// unchanged keep their documents, loads and promise; requests that have begun finish with the
// previous configuration. Call it after Start; concurrent calls wait for one another.
//
// The error is a [config.Errors] if the configuration is wrong, holds an [origin.SchemaError]
// for each resource that does not match the database, is a [RestartError] if it needs a restart, and
// wraps [cache.ErrUnavailable] if the database does not answer.
func (g *Gateway) Reload(ctx context.Context, cfg *config.Config) (*Reloaded, error) {
	full, err := g.listens.complete(cfg)
	if err != nil {
		return nil, err
	}
	return g.reload(ctx, &full)
}

// reload is Reload of a configuration that is valid and has its defaults. It may modify full.
func (g *Gateway) reload(ctx context.Context, full *config.Config) (*Reloaded, error) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	ctx, cancel := context.WithCancel(ctx)
	defer cancel()
	defer context.AfterFunc(g.ctx, cancel)()
	if !g.serving || g.ctx.Err() != nil {
		return nil, errNotServing
	}
	old := g.now()
	changes := old.difference(full)
	if need := config.NeedRestart(changes); len(need) > 0 {
		return nil, &RestartError{Changes: need}
	}
	done := &Reloaded{Changes: changes, Warnings: slices.Clone(full.Warnings)}
	if len(changes) == 0 {
		return done, nil
	}
	step := &reload{gateway: g, old: old, next: &generation{config: full}}
	if err := step.prepare(ctx); err != nil {
		return nil, err
	}
	step.commit()
	done.Warnings = append(done.Warnings, step.warnings...)
	return done, nil
}

var errNotServing = errors.New("the gateway is not serving")

// reload is one reload in progress. It is used by one goroutine, which holds Gateway.reloading.
type reload struct {
	gateway   *Gateway
	old, next *generation
	answer    func() // makes the frontends serve the next one
	warnings  []string

	added   []cache.ResourceID                  // that the old one does not have
	gone    []cache.ResourceID                  // that the next one does not have
	changed map[cache.ResourceID]cache.Resource // that remain, with other terms
}

// prepare prepares the next generation. If that fails, nothing has changed for any client.
func (r *reload) prepare(ctx context.Context) (err error) {
	g, cfg := r.gateway, r.next.config
	fresh := r.compare()
	var addition *origin.Addition
	if len(fresh) > 0 {
		if addition, err = r.lookUp(ctx, fresh); err != nil {
			return err
		}
	}
	if r.next.surface, err = nextSurface(r.old.surface, r.old.config, cfg, g.options()); err != nil {
		return err
	}
	defer func() {
		if err != nil {
			err = errors.Join(err, r.next.surface.unshared(r.old.surface).close(context.WithoutCancel(ctx)))
		}
	}()
	if addition != nil {
		if err := r.add(ctx, fresh, addition); err != nil {
			return err
		}
	}
	if r.answer, err = g.prepareFrontends(r.next); err != nil {
		r.discard()
		return err
	}
	return nil
}

// compare determines which resources remain and which are removed, and returns the
// indexes in the configuration of the new ones.
func (r *reload) compare() (fresh []int) {
	old, next := r.old, r.next
	next.ids = make([]cache.ResourceID, len(next.config.Resources))
	r.changed = make(map[cache.ResourceID]cache.Resource)
	stays := make(map[cache.ResourceID]bool)
	for i := range next.config.Resources {
		now := &next.config.Resources[i]
		at := old.named(now.Name)
		if at < 0 || !now.SameDefinition(&old.config.Resources[at].Resource) {
			fresh = append(fresh, i)
			continue
		}
		id := old.ids[at]
		next.ids[i] = id
		stays[id] = true
		if terms := cacheResource(*now); terms != cacheResource(old.config.Resources[at]) {
			r.changed[id] = terms
		}
	}
	for _, id := range old.ids {
		if !stays[id] {
			r.gone = append(r.gone, id)
		}
	}
	return fresh
}

// lookUp checks whether the new resources match the database.
func (r *reload) lookUp(ctx context.Context, fresh []int) (*origin.Addition, error) {
	c := r.gateway.origin.reached.Load()
	if c == nil {
		return nil, fmt.Errorf("the database has not been reached, so it is not known whether the resources match it: %w", cache.ErrUnavailable)
	}
	var declared []resource.Resource
	for _, i := range fresh {
		declared = append(declared, r.next.config.Resources[i].Resource)
	}
	ctx, cancel := context.WithTimeout(ctx, connectPatience)
	defer cancel()
	a, err := c.database.Prepare(ctx, declared)
	if err != nil {
		return nil, err
	}
	r.warnings = append(r.warnings, a.Warnings...)
	return a, nil
}

// add gives the new resources to cache, origin and disk tier, and waits until the stream has
// reported on them, so that their first requests find the same promise as the resources that
// they may replace.
func (r *reload) add(ctx context.Context, fresh []int, a *origin.Addition) error {
	g := r.gateway
	var terms []cache.Resource
	for _, i := range fresh {
		terms = append(terms, cacheResource(r.next.config.Resources[i]))
	}
	first, err := g.cache.Add(terms)
	if errors.Is(err, cache.ErrTooManyResources) {
		return fmt.Errorf("%w; restart the gateway", err)
	}
	if err != nil {
		return err
	}
	for n, i := range fresh {
		id := first + cache.ResourceID(n)
		r.next.ids[i] = id
		r.added = append(r.added, id)
	}
	c := g.origin.reached.Load()
	if tier := g.diskTier.Load(); tier != nil {
		for _, i := range fresh {
			tier.Define(r.next.ids[i], diskResource(r.next.config, i))
		}
	}
	c.database.Extend(a)
	c.stream.Wake()
	if err := awaitFollowing(ctx, c.stream); err != nil {
		r.discard()
		return err
	}
	for _, i := range fresh {
		if ok, why := g.cache.Promise(r.next.ids[i]); !ok {
			r.warnings = append(r.warnings, "resource "+r.next.config.Resources[i].Name+": "+why)
		}
	}
	return nil
}

// awaitFollowing returns when the stream has reported on all resources.
func awaitFollowing(ctx context.Context, s origin.Stream) error {
	ctx, cancel := context.WithTimeout(ctx, takeOver)
	defer cancel()
	tick := time.NewTicker(2 * time.Millisecond)
	defer tick.Stop()
	for !s.Follows() {
		select {
		case <-ctx.Done():
			return fmt.Errorf("the stream of changes did not include the new resources within %v: %w", takeOver, cache.ErrUnavailable)
		case <-tick.C:
		}
	}
	return nil
}

// discard removes the added resources, which no client has requested yet.
func (r *reload) discard() { r.gateway.forget(r.added) }

// commit makes the next generation serve. It cannot fail.
func (r *reload) commit() {
	g := r.gateway
	for id, terms := range r.changed {
		g.cache.Change(id, terms)
	}
	g.live.Store(r.next)
	r.answer()
	g.cache.Publish(r.added, r.gone)
	if g.onReload != nil {
		g.onReload(r.next.config)
	}
	left := r.old.surface.unshared(r.next.surface)
	if len(r.gone) == 0 && left.empty() {
		return
	}
	gone := r.gone
	g.tasks.Add(1)
	// Ends when the requests that began before have, or with the context of the gateway;
	// Shutdown waits for it.
	go func() {
		defer g.tasks.Done()
		g.retire(left, gone)
	}()
}

// retire releases what only an older generation used, once its last request has ended.
func (g *Gateway) retire(left *surface, gone []cache.ResourceID) {
	timer := time.NewTimer(g.retireAfter)
	defer timer.Stop()
	select {
	case <-timer.C:
		g.reloading.Lock()
		g.forget(gone)
		g.reloading.Unlock()
	case <-g.ctx.Done():
	}
	ctx, cancel := context.WithTimeout(context.Background(), flushPatience)
	defer cancel()
	if err := left.close(ctx); err != nil {
		g.log.Warn("closing files and connections of a previous configuration failed", "error", err)
	}
}

// forget removes resources from the origin. The caller holds reloading.
func (g *Gateway) forget(ids []cache.ResourceID) {
	c := g.origin.reached.Load()
	if c == nil || len(ids) == 0 {
		return
	}
	places := make([]int, len(ids))
	for i, id := range ids {
		places[i] = int(id)
	}
	c.database.Retire(places)
}

// ReloadFile reads the configuration with Options.Load, applies it, and logs the result.
func (g *Gateway) ReloadFile(ctx context.Context) (*Reloaded, error) {
	done, err := g.reloadFile(ctx)
	e := audit.Event{Event: audit.Reload, Rule: ruleProcess, Outcome: audit.Done}
	if err != nil {
		e.Outcome, e.Detail = audit.Refused, err.Error()
	} else {
		for _, c := range done.Changes {
			e.Changes = append(e.Changes, c.Key)
		}
	}
	g.record(e)
	return done, err
}

func (g *Gateway) reloadFile(ctx context.Context) (*Reloaded, error) {
	if g.load == nil {
		return nil, errors.New("the gateway was not started from a file")
	}
	began := time.Now()
	cfg, err := g.load()
	var done *Reloaded
	if err == nil {
		full := g.listens.withDefaults(cfg) // Load has validated it
		done, err = g.reload(ctx, &full)
	}
	if err != nil {
		g.log.Error("the new configuration was refused; the previous one stays in use", "error", err)
		return nil, err
	}
	var keys []string
	for _, c := range done.Changes {
		keys = append(keys, c.Key)
	}
	g.log.Info("configuration reloaded", "changed", keys, "after", time.Since(began).Round(time.Millisecond).String())
	for _, w := range done.Warnings {
		g.log.Warn(w)
	}
	return done, nil
}
