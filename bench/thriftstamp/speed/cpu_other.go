//go:build !unix

package speed

import "time"

var began = time.Now()

// cpuTime returns the time since the start, because CPU time is not to be had.
func cpuTime() time.Duration { return time.Since(began) }
