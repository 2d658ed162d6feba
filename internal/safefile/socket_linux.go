package safefile

import (
	"context"
	"net"
	"syscall"
)

// ListenUnix binds a Unix socket to which only this process's user can connect, from the moment at
// which it has a name.
func ListenUnix(path string) (*net.UnixListener, error) {
	// The file of a socket gets the mode that the socket has when it is bound.
	config := net.ListenConfig{Control: func(_, _ string, conn syscall.RawConn) (err error) {
		if failed := conn.Control(func(fd uintptr) { err = syscall.Fchmod(int(fd), 0o600) }); failed != nil {
			return failed
		}
		return err
	}}
	l, err := config.Listen(context.Background(), "unix", path)
	if err != nil {
		return nil, err
	}
	return l.(*net.UnixListener), nil
}
