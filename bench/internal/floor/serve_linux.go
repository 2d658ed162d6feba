package floor

import (
	"runtime"
	"sync"
	"syscall"
	"unsafe"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// wait waits for events and returns their number, which is at least one.
func (l *loop) wait() (int, error) {
	if !l.options.Block {
		if n := l.poll(); n != 0 {
			return n, nil
		}
	}
	if l.options.Yield {
		runtime.Gosched()
		if n := l.poll(); n != 0 {
			return n, nil
		}
	}
	if l.parked != nil {
		err := l.parked.Read(l.ready)
		return l.found, err
	}
	for {
		n, err := syscall.EpollWait(l.epoll, l.events[:], -1)
		if err != syscall.EINTR {
			return n, err
		}
	}
}

// poll polls without waiting and without notifying the runtime's scheduler, which is not necessary
// for a system call that cannot wait.
func (l *loop) poll() int {
	n, _, errno := syscall.RawSyscall6(syscall.SYS_EPOLL_PWAIT, uintptr(l.epoll), uintptr(unsafe.Pointer(&l.events[0])), eventsAtOnce, 0, 0, 0)
	if errno != 0 {
		return 0
	}
	return int(n)
}

// read and write are system calls on nonblocking sockets.
func read(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_READ, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return int(n), errno
}

func write(fd int, p []byte) (int, syscall.Errno) {
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITE, uintptr(fd), uintptr(unsafe.Pointer(&p[0])), uintptr(len(p)))
	return int(n), errno
}

// oneSize is the pool of the choice OneSize.
var oneSize = sync.Pool{New: func() any { return new([readSize]byte) }}

// serve reads once and answers.
func (l *loop) serve(c *connection, e *syscall.EpollEvent) {
	if c.unsent != nil {
		l.flush(c, e)
		return
	}
	var alive bool
	switch l.options.Pool {
	case Classes:
		b := buf.Get(readSize)
		alive = l.exchange(c, e, b[:readSize])
		buf.Put(b)
	case OneSize:
		b := oneSize.Get().(*[readSize]byte)
		alive = l.exchange(c, e, b[:])
		oneSize.Put(b)
	default:
		alive = l.exchange(c, e, l.buffer)
	}
	if !alive {
		l.drop(c, e.Fd)
	}
}

func (l *loop) exchange(c *connection, e *syscall.EpollEvent, memory []byte) bool {
	have := copy(memory, c.rest)
	if have == len(memory) {
		return false // the request is too large
	}
	n, errno := read(c.fd, memory[have:])
	if errno != 0 {
		return errno == syscall.EAGAIN || errno == syscall.EINTR
	}
	if n == 0 {
		return false
	}
	in := memory[:have+n]
	consumed, answers, err := l.answer(in, l.answers[:0])
	l.answers = answers
	if err != nil || !l.send(c, e, answers) {
		return false
	}
	c.rest = append(c.rest[:0], in[consumed:]...)
	return true
}

// send writes the answers; bytes that the socket does not accept are copied.
func (l *loop) send(c *connection, e *syscall.EpollEvent, answers [][]byte) bool {
	for len(answers) > 0 {
		var n int
		var errno syscall.Errno
		if len(answers) == 1 {
			n, errno = write(c.fd, answers[0])
		} else {
			n, errno = l.writev(c.fd, answers)
		}
		if errno != 0 {
			if errno != syscall.EAGAIN && errno != syscall.EINTR {
				return false
			}
			n = 0
		}
		for len(answers) > 0 && n >= len(answers[0]) {
			n -= len(answers[0])
			answers = answers[1:]
		}
		if len(answers) == 0 {
			return true
		}
		if n > 0 || errno != 0 {
			for i, a := range answers {
				if i == 0 {
					a = a[n:]
				}
				c.unsent = append(c.unsent, a...)
			}
			return l.control(syscall.EPOLL_CTL_MOD, c.fd, syscall.EPOLLOUT, e.Fd, e.Pad) == nil
		}
	}
	return true
}

// iovMax is the maximum number of segments for writev.
const iovMax = 1024

func (l *loop) writev(fd int, answers [][]byte) (int, syscall.Errno) {
	l.vectors = l.vectors[:0]
	for _, a := range answers[:min(len(answers), iovMax)] {
		l.vectors = append(l.vectors, syscall.Iovec{Base: &a[0], Len: uint64(len(a))})
	}
	n, _, errno := syscall.RawSyscall(syscall.SYS_WRITEV, uintptr(fd), uintptr(unsafe.Pointer(&l.vectors[0])), uintptr(len(l.vectors)))
	return int(n), errno
}

// flush continues to send unsent bytes, and then reads again.
func (l *loop) flush(c *connection, e *syscall.EpollEvent) {
	n, errno := write(c.fd, c.unsent)
	if errno == syscall.EAGAIN || errno == syscall.EINTR {
		return
	}
	if errno != 0 {
		l.drop(c, e.Fd)
		return
	}
	if c.unsent = c.unsent[n:]; len(c.unsent) > 0 {
		return
	}
	c.unsent = nil
	if l.control(syscall.EPOLL_CTL_MOD, c.fd, syscall.EPOLLIN, e.Fd, e.Pad) != nil {
		l.drop(c, e.Fd)
	}
}
