//go:build unix

package httpload

import "syscall"

// peek copies the unread bytes that have arrived on a connection, and leaves them there. It does
// not wait.
func peek(conn syscall.Conn, into []byte) int {
	raw, err := conn.SyscallConn()
	if err != nil {
		return 0
	}
	n := 0
	_ = raw.Control(func(fd uintptr) { // fails if the connection is closed
		n, _, _ = syscall.Recvfrom(int(fd), into, syscall.MSG_PEEK) // fails if nothing has arrived: descriptors of package net do not block
	})
	return max(n, 0)
}
