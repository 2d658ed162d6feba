// Package toy is the code that the runner's own tests mutate.
package toy

// Clamp returns v limited to [low, high].
func Clamp(v, low, high int) int {
	if v < low {
		return low
	}
	if v > high {
		return high
	}
	return v
}
