package gateway

import (
	"os"
	"runtime/debug"
	"time"
)

// Memory of a gateway: the budget of the documents, the garbage before a
// collection, and the connections.
const (
	// perConnection is what one connection of net/http takes: two buffers of
	// 4 KiB, a goroutine's stack, and its bookkeeping.
	perConnection = 20 << 10
	limitBase     = 48 << 20
	limitStep     = 16 << 20 // smaller changes are not worth stopping the world
)

// heldByClients returns what the connections of all frontends need now, with large answers
// that wait for them.
func (g *Gateway) heldByClients() int64 {
	n := g.bounds.memory.Stats().Used
	for _, f := range g.frontends {
		n += perConnection*f.Connections() + f.LargePending()
	}
	return n
}

// memoryLimit returns how much memory the process should need now.
func (g *Gateway) memoryLimit() int64 {
	return g.config.Tiers.Memory/5*6 + limitBase + g.heldByClients()
}

// LimitMemory makes the Go runtime keep the memory of the whole process near the budget: 1.2
// times the documents' bytes, 64 MiB, 20 KiB per connection, and what connections hold, which
// has its own bounds (docs/SECURITY.md). It is for programs that only run a gateway. Call it
// after Start; it ends with Shutdown. GOGC and GOMEMLIMIT in the environment take precedence.
//
// GOGC stays at 100: 400 saved nothing with 64 connections (1.09 of net/http
// either way) and cost a tenth with 16,384, because garbage spread over 1 GB of
// memory that had never been touched (memory-hit/16384: 1.27 against 1.14).
func (g *Gateway) LimitMemory() {
	if os.Getenv("GOGC") != "" || os.Getenv("GOMEMLIMIT") != "" {
		return
	}
	set := int64(0)
	adjust := func() {
		limit := g.memoryLimit()
		if limit > set || limit < set-limitStep {
			set = limit + limitStep
			debug.SetMemoryLimit(set)
		}
	}
	adjust()
	g.tasks.Add(1)
	// Ends with the context of the gateway; Shutdown waits for it.
	go func() {
		defer g.tasks.Done()
		ticker := time.NewTicker(time.Second)
		defer ticker.Stop()
		for {
			select {
			case <-g.ctx.Done():
				return
			case <-ticker.C:
				adjust()
			}
		}
	}()
}
