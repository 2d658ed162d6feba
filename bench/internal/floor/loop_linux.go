package floor

import (
	"errors"
	"fmt"
	"net"
	"os"
	"runtime"
	"sync"
	"syscall"
)

// eventsAtOnce is the maximum number of events that epoll_wait returns.
const eventsAtOnce = 256

// A Server accepts connections and distributes them to its loops in turn.
type Server struct {
	// Immutable after Serve.
	answer   Answerer
	options  Options
	address  net.Addr
	acceptor *os.File // the listening socket in the runtime's poller
	loops    []*loop
	running  sync.WaitGroup
}

// Serve serves connections of a listener, which it closes after duplicating its socket. It returns
// immediately; Close ends the server.
func Serve(listener *net.TCPListener, answer Answerer, options Options) (*Server, error) {
	file, err := listener.File()
	if err != nil {
		return nil, fmt.Errorf("floor: listener: %w", err)
	}
	// The descriptor is passed to the runtime's poller after it is set to nonblocking mode, because
	// Fd sets blocking mode.
	fd, err := syscall.Dup(int(file.Fd()))
	if err = errors.Join(err, file.Close()); err != nil {
		return nil, fmt.Errorf("floor: listener: %w", err)
	}
	if err := errors.Join(listener.Close(), syscall.SetNonblock(fd, true)); err != nil {
		return nil, errors.Join(err, syscall.Close(fd))
	}
	s := &Server{answer: answer, options: options, address: listener.Addr(), acceptor: os.NewFile(uintptr(fd), "listener")}
	n := options.Loops
	if n == 0 {
		n = runtime.GOMAXPROCS(0)
	}
	for range n {
		l, err := newLoop(answer, options)
		if err != nil {
			return nil, errors.Join(err, s.Close())
		}
		s.loops = append(s.loops, l)
		// Ended by Close, which wakes the loop and waits.
		s.running.Go(l.run)
	}
	// Ended by Close, which closes the socket and waits.
	s.running.Go(s.accept)
	return s, nil
}

// Addr returns the address that is served.
func (s *Server) Addr() net.Addr { return s.address }

// Close ends the server and its connections.
func (s *Server) Close() error {
	err := s.acceptor.Close()
	for _, l := range s.loops {
		l.tell(-1)
	}
	s.running.Wait()
	return err
}

func (s *Server) accept() {
	raw, err := s.acceptor.SyscallConn()
	if err != nil {
		return
	}
	for next := 0; ; next++ {
		fd, failed := -1, error(nil)
		err := raw.Read(func(listening uintptr) bool {
			fd, _, failed = syscall.Accept4(int(listening), syscall.SOCK_NONBLOCK|syscall.SOCK_CLOEXEC)
			return failed != syscall.EAGAIN
		})
		if err != nil {
			return
		}
		if failed != nil {
			continue // the client has gone
		}
		_ = syscall.SetsockoptInt(fd, syscall.IPPROTO_TCP, syscall.TCP_NODELAY, 1)
		s.loops[next%len(s.loops)].tell(fd)
	}
}

// A connection is a socket of a loop.
type connection struct {
	fd         int
	generation int32  // of its slot when it was taken
	rest       []byte // of an incomplete request
	unsent     []byte // bytes that the socket did not accept; reading waits until they are sent
}

// A slot of the table holds a connection or nothing.
type slot struct {
	c          *connection
	generation int32
}

// A loop serves its connections from one goroutine.
type loop struct {
	// Immutable after newLoop.
	answer  Answerer
	options Options
	epoll   int
	bell    int             // an eventfd: new connections, or the end
	parked  syscall.RawConn // the epoll descriptor in the runtime's poller; nil without Park
	file    *os.File        // owns the descriptor of parked
	ready   func(uintptr) bool

	// Guarded by mu.
	mu  sync.Mutex
	new []int // descriptors; -1 ends the loop

	// Owned by run.
	events  [eventsAtOnce]syscall.EpollEvent
	slots   []slot
	free    []int32
	byFD    map[int32]*connection // with Map
	buffer  []byte
	answers [][]byte
	vectors []syscall.Iovec
	found   int // number of events, set by ready
	ended   bool
}

// bellIndex marks the events of the eventfd.
const bellIndex = -1

func newLoop(answer Answerer, options Options) (*loop, error) {
	l := &loop{answer: answer, options: options, bell: -1, byFD: map[int32]*connection{}, buffer: make([]byte, readSize)}
	var err error
	if l.epoll, err = syscall.EpollCreate1(syscall.EPOLL_CLOEXEC); err != nil {
		return nil, fmt.Errorf("floor: epoll_create1: %w", err)
	}
	bell, _, errno := syscall.RawSyscall(syscall.SYS_EVENTFD2, 0, syscall.O_NONBLOCK|syscall.O_CLOEXEC, 0)
	if errno != 0 {
		return nil, errors.Join(fmt.Errorf("floor: eventfd: %w", errno), syscall.Close(l.epoll))
	}
	l.bell = int(bell)
	if err := l.control(syscall.EPOLL_CTL_ADD, l.bell, syscall.EPOLLIN, bellIndex, 0); err != nil {
		l.close()
		return nil, err
	}
	if options.Park {
		if err := l.park(); err != nil {
			l.close()
			return nil, err
		}
	}
	return l, nil
}

// park passes the epoll descriptor to the runtime's poller, which accepts only
// nonblocking files.
func (l *loop) park() error {
	if err := syscall.SetNonblock(l.epoll, true); err != nil {
		return fmt.Errorf("floor: epoll descriptor: %w", err)
	}
	l.file = os.NewFile(uintptr(l.epoll), "epoll")
	l.ready = func(uintptr) bool { // created once, because it would be allocated for each sleep
		l.found = l.poll()
		return l.found != 0
	}
	var err error
	l.parked, err = l.file.SyscallConn()
	return err
}

// close closes the descriptors. The bell stays open: tell may be running.
func (l *loop) close() {
	if l.file != nil {
		_ = l.file.Close()
		return
	}
	_ = syscall.Close(l.epoll)
}

// tell passes a connection to the loop; -1 ends the loop.
func (l *loop) tell(fd int) {
	l.mu.Lock()
	l.new = append(l.new, fd)
	l.mu.Unlock()
	one := [8]byte{1}
	_, _ = syscall.Write(l.bell, one[:])
}

func (l *loop) control(op, fd int, events uint32, index, generation int32) error {
	e := syscall.EpollEvent{Events: events, Fd: index, Pad: generation}
	if err := syscall.EpollCtl(l.epoll, op, fd, &e); err != nil {
		return fmt.Errorf("floor: epoll_ctl: %w", err)
	}
	return nil
}

func (l *loop) run() {
	defer l.close()
	for !l.ended {
		n, err := l.wait()
		if err != nil {
			return
		}
		for i := range n {
			e := &l.events[i]
			if e.Fd == bellIndex {
				l.admit()
				continue
			}
			if c := l.find(e.Fd, e.Pad); c != nil {
				l.serve(c, e)
			}
		}
	}
	for _, s := range l.slots {
		if s.c != nil {
			_ = syscall.Close(s.c.fd)
		}
	}
	for _, c := range l.byFD {
		_ = syscall.Close(c.fd)
	}
}

// admit accepts the announced connections.
func (l *loop) admit() {
	var count [8]byte
	_, _ = syscall.Read(l.bell, count[:])
	l.mu.Lock()
	added := l.new
	l.new = nil
	l.mu.Unlock()
	for _, fd := range added {
		if fd < 0 {
			l.ended = true
			continue
		}
		c := &connection{fd: fd}
		index := l.place(c)
		if l.control(syscall.EPOLL_CTL_ADD, fd, syscall.EPOLLIN, index, c.generation) != nil {
			l.drop(c, index)
		}
	}
}

// place stores a connection where find looks for it.
func (l *loop) place(c *connection) int32 {
	if l.options.Map {
		l.byFD[int32(c.fd)] = c
		return int32(c.fd)
	}
	if len(l.free) == 0 {
		l.slots = append(l.slots, slot{})
		l.free = append(l.free, int32(len(l.slots)-1))
	}
	index := l.free[len(l.free)-1]
	l.free = l.free[:len(l.free)-1]
	c.generation = l.slots[index].generation
	l.slots[index].c = c
	return index
}

func (l *loop) find(index, generation int32) *connection {
	if l.options.Map {
		return l.byFD[index]
	}
	if s := &l.slots[index]; s.generation == generation {
		return s.c
	}
	return nil
}

func (l *loop) drop(c *connection, index int32) {
	_ = syscall.Close(c.fd)
	if l.options.Map {
		delete(l.byFD, index)
		return
	}
	l.slots[index] = slot{generation: l.slots[index].generation + 1}
	l.free = append(l.free, index)
}
