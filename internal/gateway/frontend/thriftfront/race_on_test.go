//go:build race

package thriftfront

// poolsKeep reports whether a sync.Pool retains all of its objects: under the race detector, pools drop some at random,
// so allocations cannot be counted.
const poolsKeep = false
