package load

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
	"time"
)

// USER_HZ, the unit of /proc/<pid>/stat, is 100 on every architecture that Go
// supports on Linux (it is part of the kernel's interface, unlike CONFIG_HZ).
const tick = 10 * time.Millisecond

// threadTimes returns the times that the scheduler has accounted to each living thread.
func threadTimes(pid int) (map[int]threadTime, error) {
	dir := fmt.Sprintf("/proc/%d/task", pid)
	entries, err := os.ReadDir(dir)
	if err != nil {
		return nil, err
	}
	times := make(map[int]threadTime, len(entries))
	for _, entry := range entries {
		tid, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		data, err := os.ReadFile(dir + "/" + entry.Name() + "/schedstat")
		if err != nil {
			continue // the thread has ended, or the kernel has no schedstat: the ticks include it
		}
		var t threadTime
		if t, err = parseSchedstat(data); err != nil {
			return nil, fmt.Errorf("thread %d: %w", tid, err)
		}
		times[tid] = t
	}
	return times, nil
}

// parseSchedstat reads "running waiting slices", the first two in nanoseconds.
func parseSchedstat(data []byte) (threadTime, error) {
	fields := bytes.Fields(data)
	if len(fields) < 2 {
		return threadTime{}, fmt.Errorf("schedstat %q, want three numbers", data)
	}
	running, err := strconv.ParseInt(string(fields[0]), 10, 64)
	if err != nil {
		return threadTime{}, fmt.Errorf("schedstat %q: %w", data, err)
	}
	waiting, err := strconv.ParseInt(string(fields[1]), 10, 64)
	if err != nil {
		return threadTime{}, fmt.Errorf("schedstat %q: %w", data, err)
	}
	return threadTime{running: time.Duration(running), waiting: time.Duration(waiting)}, nil
}

// processTicks returns the user and system time of the whole process.
func processTicks(pid int) (time.Duration, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	return parseStat(data)
}

// parseStat reads utime and stime, fields 14 and 15. Field 2 is the program's
// name in parentheses and may itself contain spaces and parentheses.
func parseStat(data []byte) (time.Duration, error) {
	end := bytes.LastIndexByte(data, ')')
	if end < 0 {
		return 0, fmt.Errorf("stat %q, want a name in parentheses", data)
	}
	fields := bytes.Fields(data[end+1:]) // the first of these is field 3
	if len(fields) < 13 {
		return 0, fmt.Errorf("stat %q, want at least 15 fields", data)
	}
	utime, err := strconv.ParseInt(string(fields[11]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("stat: user time: %w", err)
	}
	stime, err := strconv.ParseInt(string(fields[12]), 10, 64)
	if err != nil {
		return 0, fmt.Errorf("stat: system time: %w", err)
	}
	return time.Duration(utime+stime) * tick, nil
}

// ownWait returns how long threads of this process have waited in a run queue.
func ownWait() time.Duration {
	times, err := threadTimes(os.Getpid())
	if err != nil {
		return 0
	}
	var sum time.Duration
	for _, t := range times {
		sum += t.waiting
	}
	return sum
}
