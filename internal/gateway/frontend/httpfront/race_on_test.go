//go:build race

package httpfront

// raceEnabled reports whether the race detector is on: it needs additional memory, and
// makes pools drop objects at random.
const raceEnabled = true
