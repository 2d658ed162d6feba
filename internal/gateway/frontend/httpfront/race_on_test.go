//go:build race

package httpfront

// raceEnabled: the race detector needs additional memory, and its pools drop things at
// random.
const raceEnabled = true
