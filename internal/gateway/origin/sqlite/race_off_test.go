//go:build !race

package sqlite

// raceEnabled reports whether the race detector is on: it allocates where the
// program does not.
const raceEnabled = false
