//go:build !unix

package main

import "time"

// ownCPU returns 0, because CPU time is not measured on this system.
func ownCPU() time.Duration { return 0 }
