//go:build !race

package thriftfront

// poolsKeep says that a sync.Pool returns all of its objects.
const poolsKeep = true
