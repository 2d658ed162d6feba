//go:build linux || darwin

package redis

import (
	"fmt"
	"io"
	"syscall"
)

// silent reports whether a connection is open and has nothing to read: an idle one with data
// has announced its end, or received something that was not requested.
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
// knows. A last message of the server hides that it closes the connection.
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
