//go:build race

package respfront

// poolsKeep says that a sync.Pool returns all of its objects: the race detector makes
// pools drop some at random, so that allocations cannot be counted.
const poolsKeep = false
