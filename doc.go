// Package slipstream is the root of a module that makes the read path of a backend fast:
// documents declared over SQL tables are served by key from memory, and are never older than a
// stated bound. Its package redis is a client that sends the calls of many goroutines in few
// writes.
//
// The package itself has what all clients share: [Error] and its [Outcome],
// which say whether the server may have executed a call that failed, and what
// clients report: [Event], [Observation] and [Stats].
//
// Start with the command:
//
//	go run ./cmd/slipstream demo
//
// or put the gateway into a program of your own: package gateway, and
// examples/embed.
//
// # Words
//
//	document   the JSON body of one key, with its token, validators and forms
//	resource   the documents of one collection, declared over a table
//	frontend   a protocol in front of the cache
//	tier       a store of documents; Peek never waits, Get may
//	origin     where documents are loaded from
//	load       one loading of a key, shared by all of its callers
//	token      the snapshot of the database that a document was read under
//	horizon    the moment up to which all invalidations are known to be applied
//
// # The path of a request
//
//	internal/gateway/frontend/httpfront   path -> resource and canonical key; answer, validators
//	cache                   may this document be served? who loads it?
//	internal/gateway/tier/memory     documents by weight, within a hard budget
//	internal/gateway/origin/sqlite   one statement per batch of keys; the stream of changes
//
// Around it: gateway/config reads the file, gateway/resource holds what a resource is and the
// canonical form of its keys, internal/gateway/admin is the operator's listener, and gateway
// composes all of them and starts and stops them.
//
// # The path of a call
//
//	redis                   command -> frame, reply -> Go types
//	internal/pipe           one socket for many callers: which goroutine writes, which waits
//	internal/wire/resp      bytes <-> messages; internal/buf: memory
//
// # Import rules
//
// Package cache imports only the standard library and declares the interfaces that tiers and
// origins implement. A frontend, tier or origin imports cache and one driver, and never another
// frontend, tier or origin. Only commands and programs that embed it import gateway. The table
// in deps_test.go enforces all of this.
//
// The load generator is internal/load, tests share internal/testkit, and rivals are measured in
// bench, a separate module. docs/DESIGN.md has the full rationale.
package slipstream
