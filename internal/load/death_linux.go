package load

import (
	"errors"
	"fmt"
	"os"
	"sync"

	"golang.org/x/sys/unix"
)

// A deathWatch reports server processes that end. It waits for their pidfds in the runtime's
// poller, so watching costs nothing while they live.
type deathWatch struct {
	// Immutable after watchDeaths.
	files []*os.File
	died  chan error // has room for all

	watchers sync.WaitGroup
}

// watchDeaths watches processes until close is called. A process that cannot be watched, because
// the kernel is older than 5.10 or the process belongs to the system, is omitted.
func watchDeaths(pids []int) *deathWatch {
	d := &deathWatch{died: make(chan error, len(pids))}
	for _, pid := range pids {
		fd, err := unix.PidfdOpen(pid, unix.PIDFD_NONBLOCK)
		if errors.Is(err, unix.ESRCH) {
			d.died <- ended(pid)
		}
		if err != nil {
			continue
		}
		// A descriptor in non-blocking mode is registered with the poller.
		file := os.NewFile(uintptr(fd), "pidfd")
		conn, err := file.SyscallConn()
		if err != nil {
			_ = file.Close()
			continue
		}
		d.files = append(d.files, file)
		// Ends with the process or when close closes the file; close waits for it.
		d.watchers.Go(func() {
			if conn.Read(hasEnded) == nil {
				d.died <- ended(pid)
			}
		})
	}
	return d
}

func ended(pid int) error { return fmt.Errorf("load: process %d: %w", pid, ErrServerEnded) }

// hasEnded reports whether the process of a descriptor has ended. A process that has exited but
// whose parent has not waited for it counts as ended, too.
func hasEnded(fd uintptr) bool {
	fds := []unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds, 0)
	return err == nil && n > 0
}

func (d *deathWatch) close() {
	for _, file := range d.files {
		_ = file.Close()
	}
	d.watchers.Wait()
}
