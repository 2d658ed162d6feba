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
	s.doWrite = s.writeVectors
	s.doPeek = s.peekOnce
	s.doRead = s.readOrWait
}

// writeVectors tries to write outgoing once. It always reports true: package net
// must not wait for it.
func (s *socket) writeVectors(fd uintptr) bool {
	segments := s.outgoing.Segments()
	for {
		if len(segments) == 1 {
			s.wrote, s.wroteErr = syscall.Write(int(fd), segments[0])
		} else {
			s.wrote, s.wroteErr = unix.Writev(int(fd), segments[:min(len(segments), maxVectors)])
		}
		switch s.wroteErr {
		case syscall.EINTR:
			continue
		case syscall.EAGAIN:
			s.wroteErr = nil
		}
		s.wrote = max(s.wrote, 0)
		return true
	}
}

// readSome reads into the free part of the buffer, which must not be empty.
func (s *socket) readSome() (int, error) {
	if s.raw == nil {
		return s.conn.Read(s.in[s.end:])
	}
	s.got, s.gotErr = 0, nil
	err := s.raw.Read(s.doRead)
	if err == nil {
		err = s.gotErr
	}
	return s.got, err
}

// readOrWait reads once; false: package net waits until something is there. A
// large buffer is given back meanwhile: after a burst every idle socket would
// keep one.
func (s *socket) readOrWait(fd uintptr) bool {
	if s.in == nil {
		s.in = buf.Get(s.wantRead)
		s.in = s.in[:cap(s.in)]
	}
	for {
		n, err := syscall.Read(int(fd), s.in[s.end:])
		switch {
		case err == syscall.EINTR:
			continue
		case err == syscall.EAGAIN:
			if s.begin == s.end && len(s.in) > minRead {
				s.wantRead = len(s.in)
				buf.Put(s.in[:0])
				s.in, s.begin, s.end = nil, 0, 0
			}
			return false
		case err != nil:
			s.gotErr = err
		case n == 0:
			s.gotErr = io.EOF
		default:
			s.got = n
		}
		return true
	}
}

// peekResult is what peekOnce found. It asks by poll: recvfrom with MSG_PEEK
// allocates an address for each call.
type peekResult struct {
	fds [1]unix.PollFd
	n   int
	err error
}

func (s *socket) peekOnce(fd uintptr) {
	r := &s.peeked
	r.fds[0] = unix.PollFd{Fd: int32(fd), Events: unix.POLLIN}
	r.n, r.err = unix.Poll(r.fds[:], 0)
}

// peek returns an error if the idle socket has something to read, which no
// request asked for, or has ended. The lone reader.
func (s *socket) peek() error {
	for {
		if err := s.raw.Control(s.doPeek); err != nil {
			return err
		}
		switch r := &s.peeked; {
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
