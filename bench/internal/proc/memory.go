package proc

import (
	"bytes"
	"fmt"
	"os"
	"strconv"
)

// RSSAnon returns the anonymous resident memory of a process in bytes: its heaps
// and stacks, without the file pages that the kernel may take back. Linux only.
func RSSAnon(pid int) (int64, error) {
	status, err := os.ReadFile(fmt.Sprintf("/proc/%d/status", pid))
	if err != nil {
		return 0, err
	}
	for line := range bytes.Lines(status) {
		if value, ok := bytes.CutPrefix(line, []byte("RssAnon:")); ok {
			fields := bytes.Fields(value)
			if len(fields) != 2 {
				return 0, fmt.Errorf("status line %q, want a number of kB", line)
			}
			kb, err := strconv.ParseInt(string(fields[0]), 10, 64)
			return kb << 10, err
		}
	}
	return 0, fmt.Errorf("process %d: no RssAnon in its status", pid)
}
