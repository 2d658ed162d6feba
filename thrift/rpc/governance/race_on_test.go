//go:build race

package governance

const raceDetector = true
