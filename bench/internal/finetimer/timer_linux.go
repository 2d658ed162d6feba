package finetimer

import (
	"os"
	"syscall"
	"time"
	"unsafe"
)

const clockMonotonic = 1

// Start makes timers of this process fire within about a period of the instant for which they are
// set, until stop is called.
func Start(period time.Duration) (stop func(), err error) {
	fd, _, errno := syscall.Syscall(syscall.SYS_TIMERFD_CREATE, clockMonotonic, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, os.NewSyscallError("timerfd_create", errno)
	}
	// A descriptor in non-blocking mode is registered with the poller.
	file := os.NewFile(fd, "timerfd")
	t := syscall.NsecToTimespec(int64(period))
	spec := [2]syscall.Timespec{t, t} // interval, first
	if _, _, errno := syscall.Syscall6(syscall.SYS_TIMERFD_SETTIME, fd, 0, uintptr(unsafe.Pointer(&spec)), 0, 0, 0); errno != 0 {
		_ = file.Close()
		return nil, os.NewSyscallError("timerfd_settime", errno)
	}
	ended := make(chan struct{})
	// Ends when stop closes the file; stop waits for it.
	go func() {
		defer close(ended)
		var expirations [8]byte
		for {
			if _, err := file.Read(expirations[:]); err != nil {
				return
			}
		}
	}()
	return func() {
		_ = file.Close()
		<-ended
	}, nil
}
