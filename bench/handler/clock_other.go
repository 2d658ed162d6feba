//go:build !linux

package main

import "time"

var started = time.Now()

func bootTime() time.Duration { return time.Since(started) }
