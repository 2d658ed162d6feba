//go:build !linux

package pipe

import (
	"net"
	"time"
)

// setOptions does nothing: only Linux has TCP_USER_TIMEOUT.
func setOptions(net.Conn, time.Duration) {}
