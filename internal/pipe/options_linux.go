package pipe

import (
	"net"
	"time"

	"golang.org/x/sys/unix"
)

// setOptions bounds how long written bytes may stay unacknowledged
// (TCP_USER_TIMEOUT, tcp(7)), so that the kernel ends a connection whose peer is
// gone. Package net has set TCP_NODELAY.
func setOptions(conn net.Conn, unacknowledged time.Duration) {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok || unacknowledged <= 0 {
		return
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return
	}
	// An error is ignored: the option is not essential, because of the stall timeout.
	raw.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
}
