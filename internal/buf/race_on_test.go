//go:build race

package buf_test

// raceEnabled: the pools of a program under the race detector drop things at random.
const raceEnabled = true
