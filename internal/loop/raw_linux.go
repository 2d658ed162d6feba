package loop

import (
	"syscall"
	"unsafe"

	"golang.org/x/sys/unix"
)

// System calls of the hot path never block, so they are made without notifying the scheduler
// (RawSyscall), which saves its work before and after each call. Large copies do notify it, because
// they occupy a processor for a while.

// longCopy is the size from which a write notifies the scheduler.
const longCopy = 256 << 10

// readFile is read(2) on a descriptor that does not block.
func readFile(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
	if errno != 0 {
		return -1, errno
	}
	return int(n), 0
}

// writeFile is write(2) or writev(2) on a descriptor that does not block. total is the
// length of all segments, of which there is at least one.
func writeFile(fd int, segments [][]byte, total int) (int, syscall.Errno) {
	var n uintptr
	var errno syscall.Errno
	if len(segments) == 1 {
		p := segments[0]
		if total < longCopy {
			n, _, errno = syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		} else {
			n, _, errno = syscall.Syscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(unsafe.SliceData(p))), uintptr(len(p)))
		}
	} else {
		var vector [64]unix.Iovec
		for i, s := range segments {
			vector[i].Base = unsafe.SliceData(s)
			vector[i].SetLen(len(s))
		}
		if total < longCopy {
			n, _, errno = syscall.RawSyscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&vector)), uintptr(len(segments)))
		} else {
			n, _, errno = syscall.Syscall(unix.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&vector)), uintptr(len(segments)))
		}
	}
	if errno != 0 {
		return 0, errno
	}
	return int(n), 0
}

// unacknowledged returns the number of bytes that the peer of a socket has not acknowledged
// (tcp(7), SIOCOUTQ), or 0 if that is not known.
func unacknowledged(fd int) int {
	n, err := unix.IoctlGetInt(fd, unix.SIOCOUTQ)
	if err != nil {
		return 0
	}
	return n
}

// unread returns the number of bytes of a socket that wait to be read (tcp(7), SIOCINQ), or 0 if
// that is not known.
func unread(fd int) int {
	var n int32
	_, _, errno := syscall.RawSyscall(unix.SYS_IOCTL, uintptr(fd), unix.SIOCINQ, uintptr(unsafe.Pointer(&n)))
	if errno != 0 {
		return 0
	}
	return int(n)
}

// hasQueue reports whether connections wait to be accepted.
func hasQueue(fd int) bool {
	fds := [1]unix.PollFd{{Fd: int32(fd), Events: unix.POLLIN}}
	n, err := unix.Poll(fds[:], 0)
	return n > 0 && err == nil
}

// pollEvents returns the pending events without waiting.
func pollEvents(epfd int, events []unix.EpollEvent) int {
	n, _, errno := syscall.RawSyscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// waitEvents waits for events, for at most the given number of milliseconds; -1 means no limit.
func waitEvents(epfd int, events []unix.EpollEvent, milliseconds int) int {
	n, _, errno := syscall.Syscall6(unix.SYS_EPOLL_PWAIT, uintptr(epfd), uintptr(unsafe.Pointer(&events[0])), uintptr(len(events)), uintptr(milliseconds), 0, 0)
	if errno != 0 {
		return 0 // EINTR
	}
	return int(n)
}

var one = [8]byte{1} // a count of 1; in the other byte order it is not 0, either

// wakeEventfd ends a wait.
func wakeEventfd(fd int) {
	_, _, _ = syscall.RawSyscall(unix.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&one)), uintptr(len(one)))
}

func drainEventfd(fd int) {
	var count [8]byte
	_, _, _ = syscall.RawSyscall(unix.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&count)), uintptr(len(count)))
}

// cut shortens segments to at most most bytes and returns their number.
func cut(segments *[][]byte, most int) (total int) {
	for i, s := range *segments {
		if total += len(s); total >= most {
			(*segments)[i] = s[:len(s)-(total-most)]
			clear((*segments)[i+1:])
			*segments = (*segments)[:i+1]
			return most
		}
	}
	return total
}
