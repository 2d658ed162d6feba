package main

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

// fineTimers makes the timers of this process precise until stop is called. The
// runtime rounds the waits of an idle process up to whole milliseconds, which
// would make every delay below one millisecond a whole one; a timer of the
// kernel that fires each period wakes the runtime, which then looks at its
// timers.
func fineTimers(period time.Duration) (stop func(), err error) {
	const monotonic = 1
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, monotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("timerfd_create", errno)
	}
	// A descriptor in non-blocking mode is registered with the poller.
	file := os.NewFile(fd, "timerfd")
	spec := struct{ interval, value syscall.Timespec }{syscall.NsecToTimespec(int64(period)), syscall.NsecToTimespec(int64(period))}
	if _, _, errno := syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0); errno != 0 {
		_ = file.Close()
		return nil, os.NewSyscallError("timerfd_settime", errno)
	}
	done := make(chan struct{})
	// Ends when stop closes the file; stop waits for it.
	go func() {
		defer close(done)
		var expirations [8]byte
		for {
			if _, err := file.Read(expirations[:]); err != nil {
				return
			}
		}
	}()
	return func() {
		_ = file.Close()
		<-done
	}, nil
}
