//go:build race

package ladder

// raceEnabled reports whether the race detector is enabled. It uses additional memory, and makes
// pools drop objects at random.
const raceEnabled = true
