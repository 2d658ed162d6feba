//go:build !unix

package speed

import "time"

var began = time.Now()

// cpuTime returns the time since the start, because the CPU time is not available.
func cpuTime() time.Duration { return time.Since(began) }
