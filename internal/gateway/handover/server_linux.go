package handover

import (
	"context"
	"errors"
	"fmt"
	"net"
	"os"
	"sync"
	"time"

	"golang.org/x/sys/unix"
)

// door is the state of a waiting Server.
type door struct {
	// Guarded by mu.
	mu       sync.Mutex
	listener *net.UnixListener
	inode    uint64        // of its path
	visitor  *net.UnixConn // the successor that is being talked to
	closed   bool

	kept []kept // owned by the goroutine that serves the visitor; by Close once all have ended
}

func newServer(options Options, l *net.UnixListener, kept []kept, leave func()) *Server {
	s := &Server{options: options, leave: leave, quit: make(chan struct{})}
	s.door.listener, s.door.inode, s.door.kept = l, inodeAt(options.Path), kept
	s.ended.Add(1)
	// Ends when the listener is closed: by Close, or after a handover. Close waits for it.
	go s.accept(l)
	return s
}

// Close stops waiting for a successor, closes the duplicates of the sockets, and removes the
// path, unless it leads to a successor by now. A successor that is starting continues on its
// own.
func (s *Server) Close() {
	if s == nil {
		return
	}
	s.door.mu.Lock()
	if !s.door.closed {
		s.door.closed = true
		close(s.quit)
		_ = s.door.listener.Close() // this notifies no process
		if s.door.visitor != nil {
			_ = s.door.visitor.Close() // it continues alone
		}
	}
	s.door.mu.Unlock()
	s.ended.Wait()
	closeKept(s.door.kept)
	s.door.kept = nil

	// The holder of the lock may be about to rename: then this process must not remove the
	// path.
	f, err := openLock(s.options.Path)
	if err != nil {
		return
	}
	defer f.Close()
	if inode := s.door.inode; tryLock(f) == nil && inode != 0 && inodeAt(s.options.Path) == inode {
		_ = os.Remove(s.options.Path) // a stale one does no harm
	}
}

// accept admits one visitor at a time.
func (s *Server) accept(l *net.UnixListener) {
	defer s.ended.Done()
	for {
		conn, err := l.AcceptUnix()
		if errors.Is(err, net.ErrClosed) {
			return
		}
		if err != nil { // out of file descriptors
			select {
			case <-s.quit:
				return
			case <-time.After(pause):
			}
			continue
		}
		who, err := peer(conn)
		switch {
		case err != nil:
			s.turnAway(conn, stateRefused)
		case !mayTalk(uint32(os.Geteuid()), who.Uid):
			s.options.Log.Warn("a process of another user requested the sockets and was refused", "pid", who.Pid, "uid", who.Uid)
			s.turnAway(conn, stateRefused)
		case !s.admit(conn):
			s.turnAway(conn, stateBusy)
		default:
			// Ends with its connection or its time limits; Close closes the connection and
			// waits.
			go s.talk(conn, who)
		}
	}
}

// turnAway sends the reason. The message fits into the buffer of a new connection, so
// this does not block.
func (s *Server) turnAway(conn *net.UnixConn, why state) {
	if err := conn.SetDeadline(time.Now().Add(s.options.Reply)); err == nil {
		_ = send(conn, message{State: why}) // or it has left already
	}
	_ = conn.Close() // everything was sent
}

// admit makes conn the visitor, unless there is one.
func (s *Server) admit(conn *net.UnixConn) bool {
	s.door.mu.Lock()
	defer s.door.mu.Unlock()
	if s.door.visitor != nil || s.door.closed {
		return false
	}
	s.door.visitor = conn
	s.ended.Add(1)
	return true
}

// talk hands over to one successor, or continues as if nothing had happened.
func (s *Server) talk(conn *net.UnixConn, who unix.Ucred) {
	defer s.ended.Done()
	log := s.options.Log.With("pid", who.Pid)
	log.Info("a new process requests the sockets")
	err := s.handOver(conn, who)
	_ = conn.Close() // everything was sent
	if err != nil {
		s.goOn() // a reader of the log may start another
		log.Warn("the new process did not take over; this one continues to serve", "error", err)
		return
	}
	s.door.mu.Lock()
	s.door.inode = 0 // the path is the successor's
	_ = s.door.listener.Close()
	s.door.mu.Unlock()
	closeKept(s.door.kept)
	s.door.kept = nil
	log.Info("the new process serves; this one stops accepting")
	s.leave()
}

// handOver returns nil once the successor serves.
func (s *Server) handOver(conn *net.UnixConn, who unix.Ucred) error {
	if err := conn.SetDeadline(time.Now().Add(s.options.Reply)); err != nil {
		return err
	}
	if err := offer(conn, s.door.kept); err != nil {
		return err
	}
	if err := conn.SetReadDeadline(time.Now().Add(s.options.Start)); err != nil {
		return err
	}
	if err := expect(conn, stateReady); err != nil {
		if errors.Is(err, os.ErrDeadlineExceeded) {
			s.turnAway(conn, stateExpired)
		}
		return err
	}
	if err := conn.SetDeadline(time.Now().Add(s.options.Reply)); err != nil {
		return err
	}
	if err := send(conn, message{State: stateTaken}); err != nil {
		return err
	}
	if err := expect(conn, stateListening); err != nil {
		return err
	}
	if err := Notify(fmt.Sprintf("MAINPID=%d", who.Pid)); err != nil {
		s.options.Log.Warn("the service manager could not be notified of the new process", "error", err)
	}
	return nil
}

// goOn makes the path lead here again if a successor died just after it took the path, and
// admits the next visitor.
func (s *Server) goOn() {
	s.door.mu.Lock()
	inode, closed := s.door.inode, s.door.closed
	s.door.mu.Unlock()
	var l *net.UnixListener
	if !closed && inodeAt(s.options.Path) != inode {
		var err error
		if l, err = s.reclaim(); err != nil {
			s.options.Log.Error("no process can take over from this one anymore: its socket is lost", "path", s.options.Path, "error", err)
		}
	}
	s.door.mu.Lock()
	defer s.door.mu.Unlock()
	s.door.visitor = nil
	if l == nil {
		return
	}
	s.door.inode = inodeAt(s.options.Path)
	_ = s.door.listener.Close() // it has no name anymore
	s.door.listener = l
	if s.door.closed {
		_ = l.Close() // Close has seen only the other one
		return
	}
	s.ended.Add(1)
	// Like the one that it replaces, it ends when the listener is closed; Close waits
	// for it.
	go s.accept(l)
}

// reclaim binds the path again, unless another process is starting there: the lock of a process
// that died is released promptly.
func (s *Server) reclaim() (*net.UnixListener, error) {
	ctx, cancel := context.WithTimeout(context.Background(), s.options.Reply)
	defer cancel()
	f, err := awaitLock(ctx, s.options.Path)
	if err != nil {
		return nil, err
	}
	defer f.Close()
	l, err := listenAside(s.options.Path)
	if err != nil {
		return nil, err
	}
	if err := os.Rename(s.options.Path+asideSuffix, s.options.Path); err != nil {
		return nil, errors.Join(err, l.Close())
	}
	return l, nil
}

// expect reads one message, which must be want.
func expect(conn *net.UnixConn, want state) error {
	m, err := readMessage(conn) // a plain read: the kernel closes attached descriptors
	if err != nil {
		return fmt.Errorf("before its %q: %w", want, err)
	}
	if m.State != want {
		return fmt.Errorf("it sent %q; expected %q", m.State, want)
	}
	return nil
}

// offer sends names and descriptors.
func offer(conn *net.UnixConn, all []kept) error {
	for {
		n := min(len(all), perMessage)
		if err := offerSome(conn, all[:n], n < len(all)); err != nil {
			return err
		}
		if all = all[n:]; len(all) == 0 {
			return nil
		}
	}
}

func offerSome(conn *net.UnixConn, some []kept, more bool) error {
	m := message{State: stateOffer, More: more}
	var fds []int
	for _, one := range some {
		fds = append(fds, one.fd)
		m.Sockets = append(m.Sockets, one.socket)
	}
	return send(conn, m, fds...)
}
