//go:build linux || darwin

package redis

import (
	"fmt"
	"io"
	"syscall"
)

// silent reports whether a connection is open and has nothing to read. An idle connection with data
// has been closed by the server, or has received something that was not requested.
func silent(raw syscall.RawConn) bool {
	nothing := false
	err := raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		nothing = err == syscall.EAGAIN
	})
	return err == nil && nothing
}

// hungUp returns why a fully read connection is unusable, or nil if it is open as far as this side
// knows. If the server sends a last message before it closes the connection, the close is not
// detected.
func hungUp(raw syscall.RawConn) (why error) {
	err := raw.Control(func(fd uintptr) {
		var b [1]byte
		n, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		switch {
		case err == syscall.EAGAIN || err == syscall.EINTR || n > 0:
		case err != nil:
			why = err
		default:
			why = fmt.Errorf("connection closed by the server: %w", io.ErrUnexpectedEOF)
		}
	})
	if err != nil {
		return err
	}
	return why
}
