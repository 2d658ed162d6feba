//go:build !race

package respfront

// poolsKeep says that what is given to a sync.Pool comes back.
const poolsKeep = true
