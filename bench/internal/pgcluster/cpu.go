package pgcluster

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// A Meter reads the CPU time of a PostgreSQL server: the postmaster and all of its processes,
// including those that have ended. It works only on Linux.
//
// PostgreSQL has one process for each session, which is a child of the postmaster. For running
// processes, the scheduler's account is read, in nanoseconds. For ended ones, the kernel keeps a
// sum for the postmaster, which has waited for them, in ticks of 10 ms. A process that ends between
// two readings moves from one account to the other, which causes an error of one tick.
type Meter struct{ postmaster int }

// NewMeter returns a meter of the server whose first process is postmaster.
func NewMeter(postmaster int) *Meter { return &Meter{postmaster} }

// CPU returns the user and system time of the server so far.
func (m *Meter) CPU() (time.Duration, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return 0, fmt.Errorf("pgcluster: cpu time: %w", err)
	}
	var sum time.Duration
	for _, entry := range entries {
		pid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		st, err := readStat(pid)
		if err != nil || pid != m.postmaster && st.parent != m.postmaster {
			continue // not ours, or it has just ended and is included in the postmaster's sum
		}
		if running, err := schedstat(pid); err == nil {
			sum += running
		}
	}
	own, err := readStat(m.postmaster)
	if err != nil {
		return 0, fmt.Errorf("pgcluster: cpu time of postmaster %d: %w", m.postmaster, err)
	}
	return sum + own.ended, nil
}

// stat holds the fields that are used of /proc/<pid>/stat.
type stat struct {
	parent int
	ended  time.Duration // user and system time of children that were waited for
}

// USER_HZ is 100 on every architecture that Go supports on Linux.
const tick = 10 * time.Millisecond

func readStat(pid int) (stat, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return stat{}, err
	}
	return parseStat(data)
}

// parseStat reads fields 4, 16 and 17. Field 2 is the program's name in
// parentheses and may itself contain spaces and parentheses.
func parseStat(data []byte) (stat, error) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return stat{}, fmt.Errorf("stat %q, want a name in parentheses", data)
	}
	fields := bytes.Fields(data[end+1:]) // the first of these is field 3
	if len(fields) < 15 {
		return stat{}, fmt.Errorf("stat %q, want at least 17 fields", data)
	}
	var numbers [3]int64
	for i, at := range []int{1, 13, 14} {
		var err error
		if numbers[i], err = strconv.ParseInt(string(fields[at]), 10, 64); err != nil {
			return stat{}, fmt.Errorf("stat: field %d: %w", at+3, err)
		}
	}
	return stat{parent: int(numbers[0]), ended: time.Duration(numbers[1]+numbers[2]) * tick}, nil
}

// schedstat returns how long the only thread of a process has run.
func schedstat(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/schedstat", pid))
	if err != nil {
		return 0, err
	}
	first, _, _ := bytes.Cut(data, []byte(" "))
	running, err := strconv.ParseInt(string(first), 10, 64)
	return time.Duration(running), err
}
