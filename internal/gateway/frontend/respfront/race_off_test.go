//go:build !race

package respfront

// poolsKeep says that a sync.Pool returns all of its objects.
const poolsKeep = true
