package load

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// A sleeper waits for planned instants. The Go runtime rounds the waits of an
// idle process up to whole milliseconds (the timeout of epoll_wait), which would
// add up to a millisecond to every latency of a slow open loop. A timerfd makes
// the same epoll_wait return when the kernel's high-resolution timer fires: see
// TestSleeperIsPrecise for the precision.
type sleeper struct {
	// Immutable after newSleeper.
	file *os.File        // nil if no timerfd is available; then time.Sleep is used
	conn syscall.RawConn // of file
	wait func(fd uintptr) bool

	// Owned by the goroutine that sleeps.
	armed  bool // the timer was set in this wait
	failed bool
	spec   struct{ interval, value syscall.Timespec } // itimerspec
}

const (
	clockMonotonic = 1
	tfdNonblock    = syscall.O_NONBLOCK
	tfdCloexec     = syscall.O_CLOEXEC

	// A stopped run is noticed after this time at the latest.
	sleepSlice = 100 * time.Millisecond
)

func newSleeper() *sleeper {
	s := &sleeper{}
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, tfdNonblock|tfdCloexec, 0)
	if errno != 0 {
		return s
	}
	// A descriptor in non-blocking mode is registered with the poller.
	file := os.NewFile(fd, "timerfd")
	conn, err := file.SyscallConn()
	if err != nil {
		_ = file.Close()
		return s
	}
	s.file, s.conn, s.wait = file, conn, s.arm
	return s
}

// arm sets the timer on its first call in a wait. On the second, the poller has
// reported that the timer fired, and the wait is over. Setting the timer also
// clears the last expiration, and the poller reports edges, so the descriptor
// need not be read: a wait costs one system call in addition to those of the
// poller.
func (s *sleeper) arm(fd uintptr) bool {
	if s.armed {
		return true
	}
	s.armed = true
	_, _, errno := syscall.RawSyscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&s.spec)), 0, 0, 0)
	s.failed = errno != 0
	return s.failed
}

// sleep waits for about d, but at most sleepSlice.
func (s *sleeper) sleep(d time.Duration) {
	d = min(max(d, 1), sleepSlice) // 0 would disarm the timer
	if s.file == nil {
		time.Sleep(d)
		return
	}
	s.armed, s.spec.value = false, syscall.NsecToTimespec(int64(d))
	if err := s.conn.Read(s.wait); err != nil || s.failed {
		time.Sleep(d)
	}
}

func (s *sleeper) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}
