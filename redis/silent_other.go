//go:build !linux && !darwin

package redis

import "syscall"

// silent reports whether a connection is open and has nothing to read, which cannot be
// determined here: an idle connection is not reused.
func silent(syscall.RawConn) bool { return false }

// hungUp returns why a connection is unusable, which cannot be determined here.
func hungUp(syscall.RawConn) error { return nil }
