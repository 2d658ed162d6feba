//go:build race

package respfront

// poolsKeep says that what is given to a sync.Pool comes back: the race detector makes
// them drop a part at random, so that allocations cannot be counted.
const poolsKeep = false
