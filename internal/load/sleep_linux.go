package load

import (
	"os"
	"runtime"
	"syscall"
	"time"
	"unsafe"
)

// A sleeper waits for planned instants. The Go runtime rounds waits of an idle
// process up to whole milliseconds (the timeout of epoll_wait), which would put
// a millisecond into every latency of a slow open loop. A timerfd makes the
// same epoll_wait return when the kernel's high-resolution timer fires: see
// TestSleeperIsPrecise for what that gives.
type sleeper struct {
	file *os.File // nil: timerfd is not to be had, fall back to time.Sleep
	fd   uintptr
	buf  [8]byte
	spec struct{ interval, value syscall.Timespec } // itimerspec
}

const (
	clockMonotonic = 1
	tfdNonblock    = syscall.O_NONBLOCK
	tfdCloexec     = syscall.O_CLOEXEC

	// Below this a timer costs more time than it waits.
	spinBelow = 5 * time.Microsecond
	// A stopped run is noticed after this at the latest.
	sleepSlice = 100 * time.Millisecond
)

func newSleeper() *sleeper {
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, tfdNonblock|tfdCloexec, 0)
	if errno != 0 {
		return &sleeper{}
	}
	// A descriptor in non-blocking mode is registered with the poller.
	return &sleeper{file: os.NewFile(fd, "timerfd"), fd: fd}
}

// sleep waits about d, at most sleepSlice.
func (s *sleeper) sleep(d time.Duration) {
	if d > sleepSlice {
		d = sleepSlice
	}
	if d < spinBelow {
		runtime.Gosched()
		return
	}
	if s.file == nil {
		time.Sleep(d)
		return
	}
	s.spec.value = syscall.NsecToTimespec(int64(d))
	_, _, errno := syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, s.fd, 0, uintptr(unsafe.Pointer(&s.spec)), 0, 0, 0)
	if errno != 0 {
		time.Sleep(d)
		return
	}
	if _, err := s.file.Read(s.buf[:]); err != nil {
		time.Sleep(d)
	}
}

func (s *sleeper) close() {
	if s.file != nil {
		_ = s.file.Close()
	}
}
