package gateway

import (
	"context"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"time"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/gateway/tier/disk"
)

// How often the gateway tries to open a file that the previous process still has open.
const diskRetry = 50 * time.Millisecond

// openDisk opens the disk tier, if there is one. While the process that handed over its sockets
// may still have the file open, the gateway continues without it and opens it when it is free.
func (g *Gateway) openDisk() error {
	if !g.config.Tiers.Disk.Set() {
		return nil
	}
	tier, err := disk.Open(g.diskOptions())
	held, isHeld := errors.AsType[*disk.HeldError](err)
	switch {
	case err == nil:
		g.attachDisk(tier)
		return nil
	case !isHeld || !g.succeeds:
		return err
	}
	g.log.Info("the disk tier is still held by the previous process; continuing without it until it is released", "process", held.PID)
	g.tasks.Add(1)
	// Ends when the file is open, or with the context of the gateway; Shutdown waits for it.
	go func() {
		defer g.tasks.Done()
		g.awaitDisk()
	}()
	return nil
}

// awaitDisk opens the disk tier as soon as no other process has it.
func (g *Gateway) awaitDisk() {
	tick := time.NewTicker(diskRetry)
	defer tick.Stop()
	began, told := time.Now(), time.Now()
	for {
		select {
		case <-g.ctx.Done():
			return
		case <-tick.C:
		}
		tier, err := disk.Open(g.diskOptions())
		if err == nil {
			g.log.Info("the disk tier is open", "after", time.Since(began).Round(time.Millisecond))
			g.attachDisk(tier)
			return
		}
		if time.Since(told) > 30*time.Second {
			told = time.Now()
			g.log.Warn("the disk tier cannot be opened yet", "error", err)
		}
	}
}

func (g *Gateway) diskOptions() disk.Options {
	d := g.config.Tiers.Disk
	return disk.Options{Dir: g.config.Path(d.Path), Budget: d.Size, Boot: bootID(), Logger: g.log, BeforeRead: g.diskRead}
}

// attachDisk defines the resources in the tier and attaches it to the cache.
func (g *Gateway) attachDisk(tier *disk.Tier) {
	g.reloading.Lock()
	defer g.reloading.Unlock()
	g.defineOnDisk(tier)
	if !g.giveToCache(tier) {
		g.diskTier.Store(nil)
		if err := tier.Close(); err != nil {
			g.log.Warn("closing the disk tier failed", "error", err)
		}
		return
	}
	g.beginWarmUp(tier)
}

// giveToCache attaches the tier, without the documents that were purged before.
func (g *Gateway) giveToCache(tier *disk.Tier) bool {
	g.purging.Lock()
	defer g.purging.Unlock()
	g.dropUnattached(tier)
	g.diskTier.Store(tier)
	return g.cache.Attach(tier, 0)
}

// defineOnDisk tells the tier the index of each resource and how its documents are
// made.
func (g *Gateway) defineOnDisk(tier *disk.Tier) {
	now := g.now()
	for i, id := range now.ids {
		tier.Define(id, diskResource(now.config, i))
	}
}

// documentsFormat is part of every fingerprint: it is incremented when the same definition
// would give other bytes.
const documentsFormat = 1

// diskResource is a resource as the disk tier must know it. Its documents are useless once
// they are made in another way or from another database.
func diskResource(c *config.Config, i int) disk.Resource {
	r := &c.Resources[i]
	h := sha256.New()
	fmt.Fprintf(h, "%d\n%d\n", documentsFormat, c.MaxDocument)
	h.Write(r.Definition())
	return disk.Resource{Name: r.Name, Fingerprint: hex.EncodeToString(h.Sum(nil)[:16]), Aged: r.NoPromise}
}

// closeDisk releases the file before the rest of the gateway ends, so that the process that
// takes over can open it. It first writes what is queued.
func (g *Gateway) closeDisk(ctx context.Context) error {
	tier := g.diskTier.Load()
	if tier == nil {
		return nil
	}
	if err := g.saveHotKeys(tier); err != nil {
		g.log.Warn("the hot keys were not saved; the next process will not be warmed up", "error", err)
	}
	err := tier.Sync(ctx)
	// The documents that were loaded last wait for the next report of the stream.
	for range 20 {
		if tier.Figures().Queued == 0 || err != nil || ctx.Err() != nil {
			break
		}
		time.Sleep(diskRetry)
		err = tier.Sync(ctx)
	}
	if g.cache.Detach(tier) {
		err = errors.Join(err, tier.Close())
	}
	if err != nil {
		return fmt.Errorf("close the disk tier: %w", err)
	}
	return nil
}

// diskStats returns the stats of the disk tier; ok is false if there is none.
func (g *Gateway) diskStats() (disk.Stats, bool) {
	if tier := g.diskTier.Load(); tier != nil {
		return tier.Figures(), true
	}
	return disk.Stats{}, false
}
