// Package gateway serves documents: a configuration becomes an origin, a cache with its tiers,
// frontends and the listener of operators. The command slipstream serves with it, and programs
// embed it.
//
// # Embedding
//
// [New] takes a [config.Config], which may be made in Go, and [Gateway.Start] connects. Then
// [Gateway.Get] and [Gateway.GetMany] return documents without a protocol, [Gateway.Handler] can
// be mounted next to other handlers in a net/http server, and [Gateway.Collector] can be
// registered with Prometheus. A gateway listens at the default addresses unless
// [Options.NoDefaultListeners] is set. It needs its triggers in the database: see [ApplyTriggers].
// The program in examples/embed does all of this.
//
// # Inside
//
// A request comes from a frontend (internal/gateway/frontend), which turns bytes into a key and
// documents into answers, to the cache (package cache), which finds a document that is fresh
// enough in its tiers (internal/gateway/tier) or has it loaded by the origin
// (internal/gateway/origin), whose stream reports every change.
//
// This package composes them: gateway.go and listen.go start and stop everything, frontend.go says
// what a frontend must provide, http.go and redis.go adapt the existing ones, library.go is for
// programs that embed a gateway, driver.go knows the kinds of databases, origin.go and database.go
// reach one, generation.go and reload.go apply other configurations, surface.go opens what access
// rules, limits and logs need, canary.go checks the promise, operate.go and the files named after
// figures, metrics and pages serve operators.
package gateway
