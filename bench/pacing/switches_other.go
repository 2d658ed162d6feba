//go:build !unix

package main

import "github.com/slipstream-go/slipstream/internal/load"

// switches are not counted here.
func switches() []load.Counter { return nil }
