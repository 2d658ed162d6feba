//go:build !linux

package httpload

import "syscall"

// manySources is false, because only 127.0.0.1 is certain to be an address of this machine.
const manySources = false

func bindWithoutPort(_, _ string, _ syscall.RawConn) error { return nil }
