//go:build !linux

package load

import "time"

func threadTimes(int) (map[int]threadTime, error) { return nil, ErrNoProcessCPU }

func processTicks(int) (time.Duration, error) { return 0, ErrNoProcessCPU }

// ownWait is unknown on this system, so "generator starved" is never reported.
func ownWait() time.Duration { return 0 }
