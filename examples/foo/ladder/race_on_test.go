//go:build race

package ladder

// raceEnabled: the race detector uses its own memory, and its pools drop things at
// random.
const raceEnabled = true
