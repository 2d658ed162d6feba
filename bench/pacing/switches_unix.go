//go:build unix

package main

import (
	"context"
	"syscall"

	"github.com/slipstream-go/slipstream/internal/load"
)

// switches returns counters of the context switches of this process.
func switches() []load.Counter {
	read := func(of func(*syscall.Rusage) float64) func(context.Context) (float64, error) {
		return func(context.Context) (float64, error) {
			var u syscall.Rusage
			err := syscall.Getrusage(syscall.RUSAGE_SELF, &u)
			return of(&u), err
		}
	}
	return []load.Counter{
		{Name: slept, Read: read(func(u *syscall.Rusage) float64 { return float64(u.Nvcsw) })},
		{Name: preempted, Read: read(func(u *syscall.Rusage) float64 { return float64(u.Nivcsw) })},
	}
}
