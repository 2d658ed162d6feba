//go:build race

package sqlite

// raceEnabled: the race detector allocates where the program does not.
const raceEnabled = true
