//go:build !race

package governance

const raceDetector = false
