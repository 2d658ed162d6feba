//go:build !unix

package main

import "github.com/slipstream-go/slipstream/internal/load"

// switches are not counted on this system.
func switches() []load.Counter { return nil }
