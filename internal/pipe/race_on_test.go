//go:build race

package pipe

// raceEnabled is true if the race detector is enabled. Its own allocations are counted, and its pools drop
// objects at random.
const raceEnabled = true
