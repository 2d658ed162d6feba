//go:build !linux

package httpget

import "syscall"

func bindWithoutPort(_, _ string, _ syscall.RawConn) error { return nil }
