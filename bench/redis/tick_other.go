//go:build !linux

package main

import "time"

// fineTimers does nothing here: delays below a millisecond are as precise as the
// runtime's timers.
func fineTimers(time.Duration) (stop func(), err error) { return func() {}, nil }
