//go:build race

package loop_test

// raceEnabled: the race detector needs additional memory, and its pools drop things at
// random.
const raceEnabled = true
