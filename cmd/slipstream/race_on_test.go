//go:build race

package main

// raceEnabled makes the tests build the command as they were built themselves.
const raceEnabled = true
