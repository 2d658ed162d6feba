package load

import (
	"errors"
	"fmt"
	"runtime/metrics"
	"time"
)

// ErrNoProcessCPU is returned on systems other than Linux, where the CPU time of another process
// cannot be read.
var ErrNoProcessCPU = errors.New("load: the cpu time of another process is not available on this system")

// A reading of all meters at one moment.
type reading struct {
	client   time.Duration // CPU of this process, user and system
	wait     time.Duration // time that threads of this process were runnable without a CPU
	servers  time.Duration
	mallocs  uint64
	bytes    uint64
	counters []float64
}

// noCPU marks a CPU time that could not be read.
const noCPU time.Duration = -1

// since returns what was used between two readings. A CPU time that is missing in the later one is
// 0.
func (now reading) since(before reading) Cost {
	cost := Cost{
		Wait:    now.wait - before.wait,
		Mallocs: now.mallocs - before.mallocs,
		Bytes:   now.bytes - before.bytes,
	}
	if now.client != noCPU {
		cost.Client = now.client - before.client
	}
	if now.servers != noCPU {
		cost.Server = now.servers - before.servers
	}
	return cost
}

// allocations returns the number of objects and bytes that this process has allocated on its heap
// so far, including tiny ones, without stopping the world.
func allocations() (objects, bytes uint64) {
	samples := []metrics.Sample{
		{Name: "/gc/heap/allocs:objects"},
		{Name: "/gc/heap/tiny/allocs:objects"},
		{Name: "/gc/heap/allocs:bytes"},
	}
	metrics.Read(samples)
	return samples[0].Value.Uint64() + samples[1].Value.Uint64(), samples[2].Value.Uint64()
}

// A ProcessMeter reads the CPU time of one other process.
//
// The source is the scheduler's account of each thread, in nanoseconds. Threads that have ended are
// missing there: the meter keeps the last value it saw for them and misses what they used after
// that. The kernel also keeps a total for the whole process, including ended threads, in ticks of
// 10 ms. Both figures can only be too low, so the meter uses the larger one; the error of a
// difference of two readings is at most two ticks.
type ProcessMeter struct {
	// Immutable after NewProcessMeter.
	pid int

	// Owned by the caller of CPU.
	threads map[int]time.Duration
}

// NewProcessMeter returns a meter of process pid.
func NewProcessMeter(pid int) *ProcessMeter {
	return &ProcessMeter{pid: pid, threads: map[int]time.Duration{}}
}

// CPU returns the user and system time of the process so far.
func (m *ProcessMeter) CPU() (time.Duration, error) {
	live, err := threadTimes(m.pid)
	if err != nil {
		return 0, fmt.Errorf("load: cpu time of process %d: %w", m.pid, err)
	}
	for tid, t := range live {
		m.threads[tid] = t.running
	}
	var sum time.Duration
	for _, t := range m.threads {
		sum += t
	}
	total, err := processTicks(m.pid)
	if err != nil {
		return 0, fmt.Errorf("load: cpu time of process %d: %w", m.pid, err)
	}
	return max(sum, total), nil
}

// threadTime is what the scheduler reports about one thread.
type threadTime struct {
	running time.Duration
	waiting time.Duration // runnable, but on no CPU
}

// Cost is what the requests of a measurement window cost.
type Cost struct {
	Client time.Duration `json:"client_ns"` // CPU time of the generator
	Server time.Duration `json:"server_ns"` // CPU time of all server processes
	// Wait is how long threads of the generator were in a run queue.
	Wait    time.Duration `json:"client_wait_ns"`
	Mallocs uint64        `json:"client_mallocs"`
	Bytes   uint64        `json:"client_bytes"`
	// Counters holds the increase of each Counter of the Config.
	Counters map[string]float64 `json:"counters,omitempty"`
}

// starvedShare is the share of the time in which the generator was runnable but had no CPU, above
// which its latencies say more about the generator than about the system under load.
const starvedShare = 0.25

// starved returns a warning if the generator lacked CPU time, or an empty string.
func (c Cost) starved() string {
	want := c.Client + c.Wait
	if want <= 0 {
		return ""
	}
	if share := float64(c.Wait) / float64(want); share > starvedShare {
		return fmt.Sprintf("generator starved: it waited for a cpu during %.0f %% of the time it wanted one", share*100)
	}
	return ""
}
