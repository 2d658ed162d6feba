package proc

import (
	"bytes"
	"errors"
	"fmt"
	"io/fs"
	"os"
	"strconv"
	"syscall"
)

// RSSAnon returns the anonymous resident memory of a process in bytes: its heaps and stacks,
// without file pages, which the kernel may reclaim. Linux only.
func RSSAnon(pid int) (int64, error) { return kilobytes(pid, "RssAnon") }

// RSSFile returns the resident pages of files that a process has mapped, in bytes. They belong to
// the page cache, and the kernel may reclaim them. Linux only.
func RSSFile(pid int) (int64, error) { return kilobytes(pid, "RssFile") }

// kilobytes reads a number of kB from the status of a process, and returns bytes.
func kilobytes(pid int, name string) (int64, error) {
	line, err := lineOf(fmt.Sprintf("/proc/%d/status", pid), name)
	if err != nil {
		return 0, err
	}
	if len(line) != 2 {
		return 0, fmt.Errorf("process %d: %s is %q, want a number of kB", pid, name, line)
	}
	kb, err := strconv.ParseInt(string(line[0]), 10, 64)
	return kb << 10, err
}

// WriteBytes returns how many bytes a process has caused to be written to devices: file pages that
// it made dirty, each once until the kernel has written it. Files that are not on a device, such as
// those of a tmpfs, are not counted. Linux only.
func WriteBytes(pid int) (int64, error) {
	return ioCount(fmt.Sprint(pid), "write_bytes")
}

// Calls returns how many system calls that read or write a process has made: read, write, readv,
// writev and similar ones, including those on sockets. Others, such as epoll_wait, futex, send and
// recv, are not counted. A pid of 0 is this process. Linux only.
func Calls(pid int) (int64, error) {
	reads, err := Reads(pid)
	if err != nil {
		return 0, err
	}
	writes, err := ioCount(entryOf(pid), "syscw")
	return reads + writes, err
}

// Reads is the part of Calls that reads.
func Reads(pid int) (int64, error) { return ioCount(entryOf(pid), "syscr") }

// Sleeps returns how often threads of a process have gone to sleep: the voluntary context switches
// of living threads. A pid of 0 is this process. Linux only.
func Sleeps(pid int) (int64, error) {
	tasks := "/proc/" + entryOf(pid) + "/task"
	entries, err := os.ReadDir(tasks)
	if err != nil {
		return 0, err
	}
	var sum int64
	for _, entry := range entries {
		line, err := lineOf(tasks+"/"+entry.Name()+"/status", "voluntary_ctxt_switches")
		if errors.Is(err, fs.ErrNotExist) || errors.Is(err, syscall.ESRCH) {
			continue // the thread has just ended
		}
		if err != nil {
			return 0, err
		}
		if len(line) != 1 {
			return 0, fmt.Errorf("process %s: voluntary_ctxt_switches is %q, want a number", entryOf(pid), line)
		}
		n, err := strconv.ParseInt(string(line[0]), 10, 64)
		if err != nil {
			return 0, err
		}
		sum += n
	}
	return sum, nil
}

// entryOf returns the directory of a process in /proc.
func entryOf(pid int) string {
	if pid == 0 {
		return "self"
	}
	return strconv.Itoa(pid)
}

// ioCount reads a number from the kernel's account of the input and output of a process.
func ioCount(process, name string) (int64, error) {
	line, err := lineOf("/proc/"+process+"/io", name)
	if err != nil {
		return 0, err
	}
	if len(line) != 1 {
		return 0, fmt.Errorf("process %s: %s is %q, want a number", process, name, line)
	}
	return strconv.ParseInt(string(line[0]), 10, 64)
}

// lineOf returns the words after "name:" in a file of the kernel.
func lineOf(path, name string) ([][]byte, error) {
	text, err := os.ReadFile(path)
	if err != nil {
		return nil, err
	}
	for line := range bytes.Lines(text) {
		if value, ok := bytes.CutPrefix(line, []byte(name+":")); ok {
			return bytes.Fields(value), nil
		}
	}
	return nil, fmt.Errorf("%s does not contain %s", path, name)
}
