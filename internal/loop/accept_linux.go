package loop

import (
	"net/netip"

	"golang.org/x/sys/unix"
)

// accept takes new connections from a listening socket.
func (l *eventLoop) accept(ln *listener) {
	if l.measure != nil {
		defer l.measured(threadCPU())
	}
	for range acceptsAtOnce {
		if !l.accepting || l.acceptAt > 0 {
			return
		}
		if !l.server.takePlace() {
			if hasQueue(ln.fd) {
				l.server.lacksRoom()
			}
			l.pauseAccepting()
			return
		}
		fd, peer, err := unix.Accept4(ln.fd, unix.SOCK_NONBLOCK|unix.SOCK_CLOEXEC)
		if err != nil {
			l.server.releasePlace()
			switch err {
			case unix.EAGAIN:
				return
			case unix.EINTR, unix.ECONNABORTED:
				continue
			}
			// No descriptors or no memory: trying again immediately would spin.
			if l.server.refused.Add(1)%100 == 1 {
				l.server.config.Log.Warn("accepting a connection failed; trying again", "error", err)
			}
			l.pauseAccepting()
			return
		}
		l.adopt(fd, peer, ln.local)
	}
}

// adopt turns an accepted socket into a connection. local reports that its listener is bound to a
// loopback address.
func (l *eventLoop) adopt(fd int, peer unix.Sockaddr, local bool) {
	c := &epollConn{loop: l, fd: fd}
	c.server, c.limits, c.backend, c.remote, c.share = l.server, &l.server.limits, c, addrOf(peer), turnUnits
	c.id, c.lane, c.local = l.server.ids.Add(1), l.lane, local
	c.opened, c.active, c.readAt = l.now, l.now, -1
	if !c.admitted() {
		_ = unix.Close(fd)
		l.server.releasePlace()
		return
	}
	if len(l.free) == 0 {
		l.free = append(l.free, uint32(len(l.slots)))
		l.slots = append(l.slots, slot{generation: 1})
	}
	c.place = l.free[len(l.free)-1]
	l.free = l.free[:len(l.free)-1]
	l.slots[c.place].conn = c
	if l.conns++; l.conns == 1 {
		l.sweepAt = l.now + l.server.config.sweepInterval()
	}
	l.server.accepted.Add(1)
	defer l.recovered(c)
	l.lend(c)
	c.session = l.server.config.New(&c.Conn)
	c.begin()
	if err := l.watch(fd, connEvents, l.slots[c.place].generation, c.place); err != nil {
		l.close(c, &CloseError{ReasonReset, err})
		return
	}
	l.endTurn(c, 0) // New may have appended a greeting
}

func addrOf(peer unix.Sockaddr) netip.AddrPort {
	switch a := peer.(type) {
	case *unix.SockaddrInet4:
		return netip.AddrPortFrom(netip.AddrFrom4(a.Addr), uint16(a.Port))
	case *unix.SockaddrInet6:
		return netip.AddrPortFrom(netip.AddrFrom16(a.Addr).Unmap(), uint16(a.Port))
	}
	return netip.AddrPort{}
}

func (l *eventLoop) addListener(one listener) {
	l.listeners = append(l.listeners, one)
	l.watchListener(len(l.listeners) - 1)
}

// watchListener watches a listening socket. It is level-triggered, so that connections that are not
// accepted immediately are reported again. If several loops share a socket, the kernel wakes only
// one of them (EPOLLEXCLUSIVE).
func (l *eventLoop) watchListener(i int) {
	events := uint32(unix.EPOLLIN)
	if l.listeners[i].shared {
		events |= unix.EPOLLEXCLUSIVE
	}
	if err := l.watch(l.listeners[i].fd, events, 0, firstListener+uint32(i)); err != nil {
		l.server.config.Log.Error("watching a listening socket failed", "error", err)
	}
}

func (l *eventLoop) pauseAccepting() {
	if l.acceptAt == 0 {
		for _, ln := range l.listeners {
			_ = unix.EpollCtl(l.epfd, unix.EPOLL_CTL_DEL, ln.fd, nil)
		}
	}
	l.acceptAt = l.now + acceptPause
}

func (l *eventLoop) resumeAccepting() {
	l.acceptAt = 0
	if !l.accepting {
		return
	}
	for i := range l.listeners {
		l.watchListener(i)
	}
}

// beginDrain makes the loop sweep soon and then stop accepting.
func (l *eventLoop) beginDrain() {
	l.now = l.server.now()
	l.sweepAt = l.now
	l.stopAt = l.now + lastAccepts
}

// finishAccepting accepts the connections in the queues of the listening sockets, some in each
// round, and then stops accepting: those left in the queues would be reset.
func (l *eventLoop) finishAccepting() {
	before := l.server.accepted.Load()
	for i := range l.listeners {
		l.accept(&l.listeners[i])
	}
	if before == l.server.accepted.Load() {
		l.stopAccepting()
	}
}

// stopAccepting closes the listening sockets.
func (l *eventLoop) stopAccepting() {
	l.stopAt = 0
	if !l.accepting {
		return
	}
	for i := range l.listeners {
		// Closing is not enough to remove it from epoll: another process may have the same socket.
		_ = unix.EpollCtl(l.epfd, unix.EPOLL_CTL_DEL, l.listeners[i].fd, nil)
		_ = unix.Close(l.listeners[i].fd)
	}
	l.listeners = nil
	l.accepting = false
	l.checkIdle()
}
