//go:build !linux

package gateway

import "time"

var processStart = time.Now()

// bootTime is the clock of the freshness promise. Where there is no
// CLOCK_BOOTTIME it is Go's monotonic clock, which may stop while the machine is
// suspended; docs/operations/sqlite.md says what that means.
func bootTime() time.Duration { return time.Since(processStart) }
