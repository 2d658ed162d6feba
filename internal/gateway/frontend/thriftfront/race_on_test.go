//go:build race

package thriftfront

// poolsKeep says that a sync.Pool returns all of its objects: the race detector makes
// pools drop some at random, so that allocations cannot be counted.
const poolsKeep = false
