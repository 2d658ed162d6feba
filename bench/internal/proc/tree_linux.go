package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// Descendants returns the living processes that a process has started, directly or indirectly, in
// no particular order.
func Descendants(pid int) ([]int, error) {
	entries, err := os.ReadDir("/proc")
	if err != nil {
		return nil, fmt.Errorf("processes: %w", err)
	}
	children := map[int][]int{}
	for _, entry := range entries {
		child, err := strconv.Atoi(entry.Name())
		if err != nil {
			continue
		}
		if parent, err := parentOf(child); err == nil { // otherwise it has just ended
			children[parent] = append(children[parent], child)
		}
	}
	var all []int
	for next := children[pid]; len(next) > 0; {
		all = append(all, next[0])
		next = append(next[1:], children[next[0]]...)
	}
	return all, nil
}

// parentOf reads field 4 of the process's stat file. Field 2 is its name in parentheses and may
// itself contain spaces and parentheses.
func parentOf(pid int) (int, error) {
	data, err := os.ReadFile(fmt.Sprintf("/proc/%d/stat", pid))
	if err != nil {
		return 0, err
	}
	fields := bytes.Fields(data[bytes.LastIndexByte(data, ')')+1:])
	if len(fields) < 2 {
		return 0, fmt.Errorf("stat %q, want a parent", data)
	}
	return strconv.Atoi(string(fields[1]))
}
