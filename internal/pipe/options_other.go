//go:build !linux

package pipe

import (
	"net"
	"time"
)

// setOptions does nothing: TCP_USER_TIMEOUT is Linux's.
func setOptions(net.Conn, time.Duration) {}
