// Package governance adds to clients of package rpc what a program with several servers needs: retries by outcome,
// hedging, fallback, a pool of members that a resolver finds, and the circuit breakers, bulkheads and rate limiters
// of a library.
//
// Each part is an [rpc.Caller] around another one, and is passed to generated clients in its place. A program that
// leaves one out pays nothing for it. The usual order is
//
//	Fallback, Retry, Hedge, Pool
//
// from the outside to the inside. A [Retry] and a [Hedge] tell the [Pool] below them which members have had the call,
// so that the next attempt goes to another one.
package governance
