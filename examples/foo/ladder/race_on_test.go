//go:build race

package ladder

// raceEnabled: the race detector has memory of its own, and its pools drop things at
// random.
const raceEnabled = true
