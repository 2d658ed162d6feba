package loop

import (
	"fmt"
	"net"
	"os"
	"sync"
	"syscall"

	"golang.org/x/sys/unix"
)

// epollEngine is the epoll backend: a few loops, each with its own epoll instance,
// listening sockets and connections. A connection stays with the loop that accepted it.
type epollEngine struct {
	// Immutable after newEpoll.
	server *Server
	loops  []*eventLoop

	running sync.WaitGroup // the loops that were started

	// Guarded by mu.
	mu        sync.Mutex
	started   bool
	busy      int // loops that have connections, or accept
	emptied   chan struct{}
	isEmptied bool
}

func newEpoll(s *Server) (engine, error) {
	e := &epollEngine{server: s, emptied: make(chan struct{})}
	for range s.config.Loops {
		l, err := newEventLoop(e)
		if err != nil {
			for _, l := range e.loops {
				l.closeFiles()
			}
			return nil, err
		}
		e.loops = append(e.loops, l)
	}
	return e, nil
}

func (e *epollEngine) serve(listeners []net.Listener) error {
	var files []int
	var local []bool
	for _, l := range listeners {
		fd, err := listenerFile(l)
		if err != nil {
			for _, fd := range files {
				_ = unix.Close(fd)
			}
			return err
		}
		files, local = append(files, fd), append(local, AtLoopback(l.Addr()))
	}
	for _, l := range listeners {
		_ = l.Close() // our descriptor keeps the socket open
	}
	for i := range max(len(files), len(e.loops)) {
		// If there are fewer sockets than loops, some are shared.
		fd, shared := files[i%len(files)], len(files) < len(e.loops)
		if i >= len(files) {
			var err error
			if fd, err = unix.FcntlInt(uintptr(fd), unix.F_DUPFD_CLOEXEC, 0); err != nil {
				e.stop(err)
				return os.NewSyscallError("fcntl", err)
			}
		}
		e.loops[i%len(e.loops)].addListener(listener{fd, shared, local[i%len(files)]})
	}
	e.mu.Lock()
	e.started = true
	e.busy = len(e.loops)
	e.mu.Unlock()
	for _, l := range e.loops {
		e.running.Add(1)
		// Ends with stop, which waits for it.
		go func() {
			defer e.running.Done()
			l.run()
		}()
	}
	return nil
}

// listenerFile returns a new descriptor for a listening socket. That of package net is watched by
// the runtime, which would wake up for every connection.
func listenerFile(l net.Listener) (int, error) {
	t, ok := l.(syscall.Conn)
	if !ok {
		return 0, fmt.Errorf("a %T has no descriptor", l)
	}
	if u, ok := l.(*net.UnixListener); ok {
		u.SetUnlinkOnClose(false) // the socket is still used
	}
	raw, err := t.SyscallConn()
	if err != nil {
		return 0, err
	}
	// Not File, which makes the socket blocking for a moment: during a handover another
	// process accepts from it, and would hang.
	fd := -1
	var failure error
	if err := raw.Control(func(sysfd uintptr) {
		fd, failure = unix.FcntlInt(sysfd, unix.F_DUPFD_CLOEXEC, 0)
	}); err != nil {
		return 0, err
	}
	if failure != nil {
		return 0, os.NewSyscallError("fcntl", failure)
	}
	if l.Addr().Network() == "tcp" {
		// Accepted sockets inherit these, which saves system calls for each connection. A client
		// that has vanished is noticed after 3 minutes.
		for _, o := range [][3]int{
			{unix.IPPROTO_TCP, unix.TCP_NODELAY, 1}, {unix.SOL_SOCKET, unix.SO_KEEPALIVE, 1},
			{unix.IPPROTO_TCP, unix.TCP_KEEPIDLE, 60}, {unix.IPPROTO_TCP, unix.TCP_KEEPINTVL, 20}, {unix.IPPROTO_TCP, unix.TCP_KEEPCNT, 6},
		} {
			_ = unix.SetsockoptInt(fd, o[0], o[1], o[2]) // without it, only speed or the time until detection suffers
		}
	}
	return fd, nil
}

func (e *epollEngine) drain() {
	for _, l := range e.loops {
		l.post(l.beginDrain)
	}
	e.mu.Lock()
	defer e.mu.Unlock()
	if !e.started {
		e.emptyLocked()
	}
}

func (e *epollEngine) empty() <-chan struct{} { return e.emptied }

// wentIdle is called by each loop once, when it accepts no more and has no connection.
func (e *epollEngine) wentIdle() {
	e.mu.Lock()
	defer e.mu.Unlock()
	if e.busy--; e.busy == 0 {
		e.emptyLocked()
	}
}

func (e *epollEngine) emptyLocked() {
	if !e.isEmptied {
		e.isEmptied = true
		close(e.emptied)
	}
}

func (e *epollEngine) stop(err error) {
	e.mu.Lock()
	started := e.started
	e.mu.Unlock()
	for _, l := range e.loops {
		if started {
			l.post(func() { l.quit(err) })
		} else {
			l.closeFiles()
		}
	}
	e.running.Wait()
}

func (e *epollEngine) stats(s *Stats) {
	for _, l := range e.loops {
		p := &l.published
		s.Reads += p.reads.Load()
		s.Writes += p.writes.Load()
		s.Wakes += p.wakes.Load()
		s.Events += p.events.Load()
		s.Sleeps += p.sleeps.Load()
		s.Postponed += p.postponed.Load()
		s.Late += p.late.Load()
		s.Owed += p.owed.Load()
	}
}
