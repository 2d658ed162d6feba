//go:build linux || darwin

package pipe

import (
	"io"
	"net"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// maxVectors is the maximum number of segments of one writev.
const maxVectors = 64

// setRaw sets raw if the connection can be written without waiting. This is impossible for TLS
// and pipes, which are written by the writer.
func (s *socket) setRaw() {
	switch c := s.conn.(type) {
	case *net.TCPConn:
		s.raw, _ = c.SyscallConn()
	case *net.UnixConn:
		s.raw, _ = c.SyscallConn()
	}
	s.in.raw = s.raw
	s.out.doWrite = s.out.writeVectors
	s.in.doPeek = s.in.peekOnce
	s.in.doRead = s.in.readOrWait
}

// writeVectors tries to write outgoing once. It always returns true, so that package net
// does not wait.
func (o *output) writeVectors(fd uintptr) bool {
	segments := o.outgoing.Segments()
	for {
		if len(segments) == 1 {
			o.wrote, o.wroteErr = syscall.Write(int(fd), segments[0])
		} else {
			o.wrote, o.wroteErr = unix.Writev(int(fd), segments[:min(len(segments), maxVectors)])
		}
		switch o.wroteErr {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			o.wroteErr = nil
		}
		o.wrote = max(o.wrote, 0)
		return true
	}
}

// readSome reads the missing part of a direct message, and then into the free part of the
// buffer, which must not be empty.
func (in *input) readSome() (int, error) {
	if in.raw == nil {
		return in.readConn()
	}
	in.got, in.gotErr = 0, nil
	err := in.raw.Read(in.doRead)
	if err == nil {
		err = in.gotErr
	}
	return in.got, err
}

// readOrWait reads once. If it returns false, package net waits for data and calls it again. The
// buffer is released meanwhile, so that idle sockets have none. That costs a
// use of the pool for each wait, which is cheap compared with the wait.
func (in *input) readOrWait(fd uintptr) bool {
	if in.buf == nil {
		in.buf = buf.Get(in.wantRead)
		in.buf = in.buf[:cap(in.buf)]
	}
	for {
		n, err := in.readOnce(fd)
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			if in.begin == in.end {
				in.wantRead = len(in.buf)
				buf.Put(in.buf[:0])
				in.buf, in.begin, in.end = nil, 0, 0
			}
			return false
		case err != nil:
			in.gotErr = err
		case n == 0:
			in.gotErr = io.EOF
		default:
			in.got = n
		}
		return true
	}
}

// readOnce reads what is available.
func (in *input) readOnce(fd uintptr) (int, error) {
	switch {
	case in.direct.buf != nil:
		return in.readVectors(fd, in.direct.missing())
	case in.aiming() && in.aim.have < len(in.aim.room):
		return in.readAimed(fd)
	}
	return syscall.Read(int(fd), in.buf[in.end:])
}

// readVectors reads into first, and the rest into the read buffer, which must be empty.
func (in *input) readVectors(fd uintptr, first []byte) (int, error) {
	in.vectors = [2][]byte{first, in.buf}
	n, err := unix.Readv(int(fd), in.vectors[:])
	in.vectors = [2][]byte{}
	return n, err
}

// readAimed reads into the memory of a call, or into the read buffer if the call has ended.
func (in *input) readAimed(fd uintptr) (int, error) {
	room := in.socket.holdCall()
	if room == nil {
		return syscall.Read(int(fd), in.buf)
	}
	in.aim.scattered = true
	n, err := in.readVectors(fd, room)
	in.socket.letGo()
	if n <= 0 {
		in.aim.scattered = false
	}
	return n, err
}

// peekResult is the result of peekOnce. It uses poll, because recvfrom with MSG_PEEK
// allocates an address for each call.
type peekResult struct {
	fds [1]unix.PollFd
	n   int
	err error
}

func (in *input) peekOnce(fd uintptr) {
	r := &in.peeked
	r.fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	r.n, r.err = unix.Poll(r.fds[:], 0)
}

// peek returns an error if the idle socket has data that answers no
// request, or has ended. The caller has the reader's role.
func (s *socket) peek() error {
	for {
		if err := s.raw.Control(s.in.doPeek); err != nil {
			return err
		}
		switch r := &s.in.peeked; {
		case r.err == syscall.EINTR:
			continue
		case r.err != nil:
			return r.err
		case r.n == 0:
			return nil
		}
		if err := s.readEarly(); err != nil {
			return err
		}
	}
}

// A hangUpCheck asks the kernel whether the other side has closed a connection.
type hangUpCheck struct {
	fds [1]unix.PollFd
	do  func(fd uintptr)
}

// hangUpChecks keeps checks, so that they do not allocate.
var hangUpChecks = sync.Pool{New: func() any {
	k := new(hangUpCheck)
	k.do = func(fd uintptr) {
		k.fds[0] = unix.PollFd{Fd: int32(fd), Events: hangUpEvents}
		_, _ = unix.Poll(k.fds[:], 0) // if it fails, the connection counts as open
	}
	return k
}}

// hungUp reports whether the other side has closed the connection, as far as the kernel knows.
func (s *socket) hungUp() bool {
	if s.raw == nil {
		return false
	}
	k := hangUpChecks.Get().(*hangUpCheck)
	defer hangUpChecks.Put(k)
	k.fds[0].Revents = 0
	if err := s.raw.Control(k.do); err != nil {
		return true
	}
	return k.fds[0].Revents&(hangUpEvents|unix.POLLHUP|unix.POLLERR) != 0
}
