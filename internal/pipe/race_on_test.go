//go:build race

package pipe

// raceEnabled: the race detector's own allocations are counted, and its pools
// drop things at random.
const raceEnabled = true
