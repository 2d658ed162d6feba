package safefile

import (
	"context"
	"net"
	"syscall"
)

// ListenUnix binds a unix socket that only this process's user can connect to from the moment on
// at which it has a name.
func ListenUnix(path string) (*net.UnixListener, error) {
	// The mode of a socket is that of its file once it is bound.
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
