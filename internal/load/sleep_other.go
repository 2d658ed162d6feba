//go:build !linux

package load

import "time"

// A sleeper waits for planned instants, with the precision of the runtime's timers; the pacing
// error of the run shows how good that is.
type sleeper struct{}

// A stopped run is noticed after this time at the latest.
const sleepSlice = 100 * time.Millisecond

func newSleeper() *sleeper { return &sleeper{} }

// sleep waits for about d, but at most sleepSlice.
func (s *sleeper) sleep(d time.Duration) { time.Sleep(min(d, sleepSlice)) }

func (s *sleeper) close() {}
