//go:build !linux

package loop

import (
	"errors"
	"syscall"
)

const hasEpoll = false

func unacknowledged(int) int { return 0 }

func reusePort(string, string, syscall.RawConn) error { return nil }

func newEpoll(*Server) (engine, error) {
	return nil, errors.New("loop: the backend epoll is not available on this system")
}
