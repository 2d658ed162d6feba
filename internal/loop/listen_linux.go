package loop

import (
	"syscall"

	"golang.org/x/sys/unix"
)

const hasEpoll = true

// reusePort allows several sockets of this process to be bound to one address (socket(7)).
func reusePort(_, _ string, c syscall.RawConn) error {
	var failure error
	err := c.Control(func(fd uintptr) {
		failure = unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_REUSEPORT, 1)
	})
	if err != nil {
		return err
	}
	return failure
}
