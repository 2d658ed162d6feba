//go:build !race

package thriftfront

// poolsKeep reports whether a sync.Pool retains all of its objects.
const poolsKeep = true
