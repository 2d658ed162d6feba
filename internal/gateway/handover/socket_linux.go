package handover

import (
	"errors"
	"fmt"
	"net"
	"os"
	"syscall"

	"golang.org/x/sys/unix"
)

// listenerOf makes a listener from a descriptor of another process, after checking what it
// is. It owns the descriptor.
func listenerOf(fd int) (net.Listener, uint64, error) {
	f := os.NewFile(uintptr(fd), "inherited socket")
	if f == nil {
		return nil, 0, fmt.Errorf("descriptor %d; expected an open one", fd)
	}
	defer f.Close() // package net works with a duplicate
	unix.CloseOnExec(fd)
	for _, check := range []struct {
		option, want int
		what         string
	}{
		{unix.SO_TYPE, unix.SOCK_STREAM, "a stream"},
		{unix.SO_ACCEPTCONN, 1, "listening"},
	} {
		got, err := unix.GetsockoptInt(fd, unix.SOL_SOCKET, check.option)
		if err != nil {
			return nil, 0, fmt.Errorf("descriptor %d is not a socket: %w", fd, err)
		}
		if got != check.want {
			return nil, 0, fmt.Errorf("the socket of descriptor %d is not %s; expected a listening stream socket", fd, check.what)
		}
	}
	var about unix.Stat_t
	if err := unix.Fstat(fd, &about); err != nil {
		return nil, 0, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	l, err := net.FileListener(f)
	if err != nil {
		return nil, 0, fmt.Errorf("descriptor %d: %w", fd, err)
	}
	switch l.(type) {
	case *net.TCPListener, *net.UnixListener:
		return l, about.Ino, nil
	}
	_ = l.Close() // of an unknown family
	return nil, 0, fmt.Errorf("a socket of the network %s; expected tcp or unix", l.Addr().Network())
}

// kept is a duplicate of a listening socket, which the runtime does not watch: it would wake
// for every connection.
type kept struct {
	socket
	fd int
}

// keepAll duplicates the sockets of listeners. The result must be closed even if there is an
// error.
func keepAll(given []Named) (all []kept, err error) {
	if len(given) > MaxSockets {
		return nil, fmt.Errorf("%d sockets; expected at most %d", len(given), MaxSockets)
	}
	for _, one := range given {
		addr := one.Listener.Addr()
		if !isName(one.Name) {
			return all, fmt.Errorf("a socket called %.40q; expected 1 to %d of a-z, 0-9 and -", one.Name, maxName)
		}
		if l, ok := one.Listener.(*net.UnixListener); ok {
			l.SetUnlinkOnClose(false) // a successor will be reached by that name
		}
		fd, err := duplicate(one.Listener)
		if err != nil {
			return all, fmt.Errorf("socket %s: %w", one.Name, err)
		}
		all = append(all, kept{socket{Name: one.Name, Network: addr.Network(), Address: addr.String()}, fd})
	}
	return all, nil
}

func closeKept(all []kept) {
	for _, one := range all {
		_ = unix.Close(one.fd) // nothing was accepted from it
	}
}

// duplicate returns a descriptor of the listener's socket, which the caller closes.
func duplicate(l net.Listener) (int, error) {
	c, ok := l.(syscall.Conn)
	if !ok {
		return -1, fmt.Errorf("a listener of type %T; expected one of package net", l)
	}
	raw, err := c.SyscallConn()
	if err != nil {
		return -1, err
	}
	fd := -1
	var failure error
	if err := raw.Control(func(of uintptr) {
		fd, failure = unix.FcntlInt(of, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return -1, err
	}
	return fd, failure
}

// shared is a listener whose socket is also accepted from by another process. The Fd method of
// files from package net clears O_NONBLOCK, which is a flag of the socket, not of the
// descriptor: the other process would hang in its accept(2).
type shared struct{ *net.TCPListener }

// File returns a duplicate without changing flags.
func (s shared) File() (*os.File, error) {
	fd, err := duplicate(s.TCPListener)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "tcp:"+s.Addr().String()), nil
}

type sharedUnix struct{ *net.UnixListener }

// File returns a duplicate without changing flags.
func (s sharedUnix) File() (*os.File, error) {
	fd, err := duplicate(s.UnixListener)
	if err != nil {
		return nil, err
	}
	return os.NewFile(uintptr(fd), "unix:"+s.Addr().String()), nil
}

// sharedListener wraps what net.FileListener made of a predecessor's socket.
func sharedListener(l net.Listener) net.Listener {
	switch l := l.(type) {
	case *net.TCPListener:
		return shared{l}
	case *net.UnixListener:
		return sharedUnix{l}
	}
	return l
}

// peer returns the process at the other end (SO_PEERCRED, unix(7)): for a client the
// process that listens, for a server the one that connected.
func peer(conn *net.UnixConn) (unix.Ucred, error) {
	raw, err := conn.SyscallConn()
	if err != nil {
		return unix.Ucred{}, err
	}
	var who *unix.Ucred
	var failure error
	if err := raw.Control(func(fd uintptr) {
		who, failure = unix.GetsockoptUcred(int(fd), unix.SOL_SOCKET, unix.SO_PEERCRED)
	}); err != nil {
		return unix.Ucred{}, err
	}
	if failure != nil {
		return unix.Ucred{}, failure
	}
	return *who, nil
}

// mayTalk reports whether this process may hand over to, or inherit from, a process of
// that user.
func mayTalk(own, other uint32) bool { return other == own || other == 0 }

// send writes one frame, with descriptors if there are any.
func send(conn *net.UnixConn, m message, fds ...int) error {
	frame, err := encode(m)
	if err != nil {
		return err
	}
	var rights []byte
	if len(fds) > 0 {
		rights = unix.UnixRights(fds...)
	}
	n, _, err := conn.WriteMsgUnix(frame, rights, nil)
	if err == nil && n < len(frame) { // the descriptors were sent with the first byte
		_, err = conn.Write(frame[n:])
	}
	return err
}

// receiver reads from a connection and collects the attached descriptors.
type receiver struct {
	conn   *net.UnixConn
	fds    []int
	rights []byte
}

func newReceiver(conn *net.UnixConn) *receiver {
	return &receiver{conn: conn, rights: make([]byte, unix.CmsgSpace(4*(perMessage+1)))}
}

// Read reads bytes, and fails when too many descriptors come with them.
func (r *receiver) Read(b []byte) (int, error) {
	n, rights, flags, _, err := r.conn.ReadMsgUnix(b, r.rights)
	if rights > 0 {
		messages, parseErr := unix.ParseSocketControlMessage(r.rights[:rights])
		if parseErr != nil {
			return n, parseErr
		}
		for i := range messages {
			if fds, e := unix.ParseUnixRights(&messages[i]); e == nil { // other messages are ignored
				r.fds = append(r.fds, fds...)
			}
		}
	}
	if err != nil {
		return n, err
	}
	if flags&unix.MSG_CTRUNC != 0 || len(r.fds) > perMessage {
		return n, errors.New("more descriptors than a message may have, or than this process may open")
	}
	return n, nil
}

// take returns the descriptors received since the last call.
func (r *receiver) take() []int {
	fds := r.fds
	r.fds = nil
	return fds
}

func closeAll(fds []int) {
	for _, fd := range fds {
		_ = unix.Close(fd) // they were never used
	}
}
