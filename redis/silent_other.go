//go:build !linux && !darwin

package redis

import "syscall"

// silent reports whether a connection is open and has nothing to read, which cannot be told
// here: an idle one is not used again.
func silent(syscall.RawConn) bool { return false }

// hungUp returns why a connection is of no use, which cannot be told here.
func hungUp(syscall.RawConn) error { return nil }
