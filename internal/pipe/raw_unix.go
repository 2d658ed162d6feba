//go:build unix

package pipe

import (
	"net"
	"syscall"

	"golang.org/x/sys/unix"
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

// peekResult is what peekOnce found.
type peekResult struct {
	n   int
	err error
}

func (s *socket) peekOnce(fd uintptr) {
	var b [1]byte
	s.peeked.n, _, s.peeked.err = unix.Recvfrom(int(fd), b[:], unix.MSG_PEEK|unix.MSG_DONTWAIT)
}

// peek returns an error if the idle socket has something to read, which no
// request asked for, or has ended. The lone reader.
func (s *socket) peek() error {
	for {
		if err := s.raw.Control(s.doPeek); err != nil {
			return err
		}
		switch r := s.peeked; {
		case r.err == syscall.EAGAIN:
			return nil
		case r.err == syscall.EINTR:
			continue
		case r.err != nil:
			return r.err
		case r.n == 0:
			return errHungUp
		}
		if err := s.readEarly(); err != nil {
			return err
		}
	}
}
