//go:build linux || darwin

package redis

import "syscall"

// silent reports whether a connection is open and has nothing to read: an idle one that has
// something has said goodbye, or something that nobody asked for.
func silent(raw syscall.RawConn) bool {
	nothing := false
	err := raw.Control(func(fd uintptr) {
		var b [1]byte
		_, _, err := syscall.Recvfrom(int(fd), b[:], syscall.MSG_PEEK|syscall.MSG_DONTWAIT)
		nothing = err == syscall.EAGAIN
	})
	return err == nil && nothing
}
