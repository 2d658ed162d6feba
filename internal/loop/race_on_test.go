//go:build race

package loop_test

// raceEnabled reports whether the race detector is enabled. It needs additional memory, and makes
// pools drop objects at random.
const raceEnabled = true
