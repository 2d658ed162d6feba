//go:build race

package buf_test

// raceEnabled is true if the race detector is enabled: pools then drop objects at random.
const raceEnabled = true
