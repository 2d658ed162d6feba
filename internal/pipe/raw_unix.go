//go:build linux || darwin

package pipe

import (
	"io"
	"net"
	"syscall"

	"golang.org/x/sys/unix"

	"github.com/slipstream-go/slipstream/internal/buf"
)

// maxVectors is how many segments one writev takes; the rest follows.
const maxVectors = 64

// setRaw finds out whether the connection can be written without waiting. TLS
// and pipes cannot: the writer writes them.
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

// writeVectors tries to write outgoing once. It always reports true: package net
// must not wait for it.
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

// readSome reads what is missing of a direct message and then into the free part of the
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

// readOrWait reads once; false: package net waits until something is there. The
// buffer is given back meanwhile: every idle socket would keep one. That costs a
// visit to the pool for each wait, which is nothing beside the wait.
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

// readOnce reads what is there.
func (in *input) readOnce(fd uintptr) (int, error) {
	switch {
	case in.direct.buf != nil:
		return in.readVectors(fd, in.direct.missing())
	case in.aiming() && in.aim.have < len(in.aim.room):
		return in.readAimed(fd)
	}
	return syscall.Read(int(fd), in.buf[in.end:])
}

// readVectors reads what is there to first, and the rest to the read buffer, which must be empty.
func (in *input) readVectors(fd uintptr, first []byte) (int, error) {
	in.vectors = [2][]byte{first, in.buf}
	n, err := unix.Readv(int(fd), in.vectors[:])
	in.vectors = [2][]byte{}
	return n, err
}

// readAimed reads what is there to where a call wants it, or to the read buffer if the call has ended.
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

// peekResult is what peekOnce found. It asks by poll: recvfrom with MSG_PEEK
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

// peek returns an error if the idle socket has something to read, which no
// request asked for, or has ended. The lone reader.
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
