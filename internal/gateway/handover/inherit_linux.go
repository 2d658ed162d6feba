package handover

import (
	"context"
	"errors"
	"fmt"
	"io"
	"net"
	"os"
	"slices"
	"time"

	"golang.org/x/sys/unix"
)

// meeting is the successor's side of a handover.
type meeting struct {
	lock  *os.File          // nil without a path
	aside *net.UnixListener // will wait for the next successor
	conn  *net.UnixConn     // nil without a predecessor
	who   unix.Ucred        // the predecessor
}

// Inherit returns the sockets that systemd has passed, and those of a process that waits at
// the path of options, or none if there is neither. The context only bounds the call. Ready or
// Close must be called on the result; until then other processes that start with the same path
// wait.
func Inherit(ctx context.Context, options Options) (*Sockets, error) {
	s := &Sockets{options: options.withDefaults()}
	if err := s.fromSystemd(); err != nil {
		s.Close()
		return nil, fmt.Errorf("socket activation: %w", err)
	}
	if options.Path == "" {
		return s, nil
	}
	if err := s.meet(ctx); err != nil {
		s.Close()
		return nil, fmt.Errorf("handover at %s: %w", options.Path, err)
	}
	return s, nil
}

// Predecessor returns the process from which the sockets are inherited, or 0 if there is
// none.
func (s *Sockets) Predecessor() int { return int(s.meeting.who.Pid) }

// Close aborts the handover: the predecessor continues, and sockets that were not
// taken are closed.
func (s *Sockets) Close() {
	s.closeRest()
	m := &s.meeting
	if m.conn != nil {
		_ = m.conn.Close() // closing it is the message
	}
	if m.aside != nil {
		_ = m.aside.Close()
		_ = os.Remove(s.options.Path + asideSuffix) // if this fails, the next process removes it
	}
	if m.lock != nil {
		_ = m.lock.Close() // nothing was written
	}
	s.meeting = meeting{}
}

func (s *Sockets) fromSystemd() error {
	names, err := takeVariables()
	if err != nil {
		return err
	}
	for i, name := range names {
		if err := s.add(socket{Name: name}, firstActivated+i, "systemd"); err != nil {
			for fd := firstActivated + i + 1; fd < firstActivated+len(names); fd++ {
				_ = unix.Close(fd) // never used
			}
			return err
		}
	}
	return nil
}

// add keeps a socket, once. It owns the descriptor.
func (s *Sockets) add(offered socket, fd int, from string) error {
	l, inode, err := listenerOf(fd)
	if err != nil {
		return err
	}
	if bound := l.Addr(); offered.Network != "" && (bound.Network() != offered.Network || bound.String() != offered.Address) {
		_ = l.Close() // it is not the socket that was described
		return fmt.Errorf("it is bound to %s; expected %s, as in its description", bound, offered.Address)
	}
	if slices.ContainsFunc(s.all, func(one inherited) bool { return one.inode == inode }) {
		return l.Close()
	}
	if offered.Network != "" {
		l = sharedListener(l)
	}
	s.all = append(s.all, inherited{named: Named{Name: offered.Name, Listener: l}, from: from, inode: inode})
	return nil
}

// meet locks the path, takes the sockets of the process that waits there, if there is one,
// and prepares the socket at which this one will wait.
func (s *Sockets) meet(ctx context.Context) error {
	ctx, cancel := context.WithTimeout(ctx, s.options.Wait)
	defer cancel()
	var err error
	if s.options.Path, err = findPlace(s.options.Path, s.options.Log); err != nil {
		return err
	}
	m := &s.meeting
	if m.lock, err = awaitLock(ctx, s.options.Path); err != nil {
		return err
	}
	var later error // why it was retried
	for {
		err := s.ask(ctx)
		if err == nil {
			break
		}
		if !errors.Is(err, errLater) {
			if deadline, _ := ctx.Deadline(); later != nil && !time.Now().Before(deadline) {
				return later // time was up while it connected
			}
			return err
		}
		later = err
		if given := sleep(ctx, pause); errors.Is(given, ErrBusy) {
			return later
		} else if given != nil {
			return given
		}
	}
	m.aside, err = listenAside(s.options.Path)
	return err
}

// errLater is wrapped by temporary errors: the predecessor is busy or is ending.
var errLater = errors.New("timed out waiting for the running process")

// ask connects to the predecessor, if there is one, and takes its sockets.
func (s *Sockets) ask(ctx context.Context) error {
	dialing, cancel := context.WithTimeout(ctx, s.options.Reply)
	defer cancel()
	var dialer net.Dialer
	nc, err := dialer.DialContext(dialing, "unix", s.options.Path)
	switch {
	case errors.Is(err, unix.ENOENT), errors.Is(err, unix.ECONNREFUSED):
		return nil // there never was a process, or it has died
	case err != nil:
		return err
	}
	conn := nc.(*net.UnixConn) // DialContext of "unix" makes nothing else
	keep := false
	defer func() {
		if !keep {
			_ = conn.Close() // the error above is the one to report
		}
	}()
	who, err := peer(conn)
	if err != nil {
		return err
	}
	if !mayTalk(uint32(os.Geteuid()), who.Uid) {
		return fmt.Errorf("%w: process %d belongs to user %d, this one to %d", ErrPeer, who.Pid, who.Uid, os.Geteuid())
	}
	if err := conn.SetDeadline(time.Now().Add(s.options.Reply)); err != nil {
		return err
	}
	if err := s.receive(conn, fmt.Sprintf("process %d", who.Pid)); err != nil {
		return err
	}
	keep = true
	s.meeting.conn, s.meeting.who = conn, who
	return nil
}

// receive reads the offers.
func (s *Sockets) receive(conn *net.UnixConn, from string) error {
	r := newReceiver(conn)
	defer func() { closeAll(r.take()) }()
	for total := 0; ; {
		m, err := readMessage(r)
		if total == 0 && (errors.Is(err, io.EOF) || errors.Is(err, unix.ECONNRESET)) {
			return fmt.Errorf("%s closed the connection without an offer; its log says why: %w", from, errLater)
		}
		if err != nil {
			return fmt.Errorf("the offer of %s: %w", from, err)
		}
		switch m.State {
		case stateOffer:
		case stateBusy:
			return fmt.Errorf("%w: %w", ErrBusy, errLater)
		case stateRefused:
			return fmt.Errorf("%s refuses this one: %w", from, ErrPeer)
		default:
			return fmt.Errorf("%s says %q; expected its offer", from, m.State)
		}
		if total += len(m.Sockets); total > MaxSockets {
			return fmt.Errorf("%s offers more than %d sockets", from, MaxSockets)
		}
		if err := s.accept(m.Sockets, r.take(), from); err != nil {
			return fmt.Errorf("the offer of %s: %w", from, err)
		}
		if !m.More {
			return nil
		}
	}
}

// accept keeps the sockets of one offer. It owns the descriptors.
func (s *Sockets) accept(offered []socket, fds []int, from string) error {
	if len(offered) != len(fds) {
		closeAll(fds)
		return fmt.Errorf("%d sockets and %d descriptors; expected as many", len(offered), len(fds))
	}
	for i, one := range offered {
		if err := s.add(one, fds[i], from); err != nil {
			closeAll(fds[i+1:])
			return fmt.Errorf("socket %s: %w", one.Name, err)
		}
	}
	return nil
}

// Ready reports that this process has brought everything up. If there is a predecessor, it
// returns once that has agreed to stop accepting; on an error the predecessor continues, and
// this process must end without having accepted anything. Inherited sockets that were not
// taken are closed.
//
// The Server then waits at the path for the successor of this process, and is nil without a
// path. It keeps duplicates of the sockets of given, TCP or unix listeners of package net, so
// the caller may use and close these freely; a unix listener's name is no longer removed when it
// is closed. Leave is called once the successor serves, when the duplicates are closed; it must
// not wait for the Server.
func (s *Sockets) Ready(given []Named, leave func()) (*Server, error) {
	m := &s.meeting
	if m.lock == nil {
		s.Close()
		return nil, nil
	}
	kept, err := keepAll(given)
	if err == nil {
		err = s.replace()
	}
	if err != nil {
		closeKept(kept)
		s.Close()
		return nil, fmt.Errorf("handover at %s: %w", s.options.Path, err)
	}
	server := newServer(s.options, m.aside, kept, leave)
	m.aside = nil
	s.Close()
	return server, nil
}

// replace makes the path lead to this process, with the predecessor's consent.
func (s *Sockets) replace() error {
	m := &s.meeting
	alone := m.conn == nil
	if !alone {
		var err error
		if alone, err = s.agree(); err != nil {
			return err
		}
	}
	if err := os.Rename(s.options.Path+asideSuffix, s.options.Path); err != nil {
		return err
	}
	if alone {
		return nil
	}
	if err := send(m.conn, message{State: stateListening}); err != nil {
		s.options.Log.Warn("the old process has ended or continues to serve; if it still runs, end it", "pid", m.who.Pid, "error", err)
	}
	return nil
}

// agree sends ready and waits for the answer. If the predecessor has ended or does not
// answer, this process continues alone.
func (s *Sockets) agree() (alone bool, err error) {
	m := &s.meeting
	if err := m.conn.SetDeadline(time.Now().Add(s.options.Reply)); err != nil {
		return false, err
	}
	// A predecessor that has given up has said so before it closed: then writing fails, and
	// its message can still be read.
	writeErr := send(m.conn, message{State: stateReady})
	answer, err := readMessage(newReceiver(m.conn))
	if err != nil {
		s.options.Log.Warn("the old process does not answer; this one serves anyway. If the old one still runs, end it",
			"pid", m.who.Pid, "error", errors.Join(writeErr, err))
		return true, nil
	}
	switch answer.State {
	case stateTaken:
		return false, nil
	case stateExpired:
		return false, ErrExpired
	}
	return false, fmt.Errorf("process %d says %q; expected %q", m.who.Pid, answer.State, stateTaken)
}
