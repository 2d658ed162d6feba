//go:build !linux

package freshness

import "time"

var started = time.Now()

// Now returns the nanoseconds since this process was started: on other systems, package time
// provides no clock that processes share, so writers in other processes cannot be checked there.
func Now() int64 { return int64(time.Since(started)) }
