// Package governance extends the clients of package rpc for services with several servers. It provides retries by
// outcome, hedging, fallbacks, and a pool of members found by a resolver, and adapts the circuit breakers, bulkheads
// and rate limiters of a library.
//
// Each part is an [rpc.Caller] that wraps another one and is passed to generated clients in its place. Parts that are
// not used cost nothing. The usual order is
//
//	Fallback, Retry, Hedge, Pool
//
// from the outermost to the innermost. A [Retry] and a [Hedge] tell the [Pool] inside them which members have already
// received the call, so that the next attempt goes to another one.
package governance
