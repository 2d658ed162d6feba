package pipe

import (
	"net"
	"syscall"
	"time"

	"golang.org/x/sys/unix"
)

// setOptions bounds how long written bytes may stay unacknowledged
// (TCP_USER_TIMEOUT, tcp(7)), so that the kernel ends a connection whose peer is
// gone. Package net has set TCP_NODELAY.
func setOptions(conn net.Conn, unacknowledged time.Duration) {
	raw := rawTCP(conn)
	if raw == nil || unacknowledged <= 0 {
		return
	}
	// An error is ignored: the option is not essential, because of the stall timeout.
	raw.Control(func(fd uintptr) {
		unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_USER_TIMEOUT, int(unacknowledged.Milliseconds()))
	})
}

// hangUpEvents is what poll(2) reports when the other side has closed a connection, or its half of
// one.
const hangUpEvents = unix.POLLRDHUP

// rawTCP returns the TCP socket of a connection, including one under TLS, or nil.
func rawTCP(conn net.Conn) syscall.RawConn {
	if t, ok := conn.(interface{ NetConn() net.Conn }); ok {
		conn = t.NetConn()
	}
	tcp, ok := conn.(*net.TCPConn)
	if !ok {
		return nil
	}
	raw, err := tcp.SyscallConn()
	if err != nil {
		return nil
	}
	return raw
}

// AckNow makes the kernel acknowledge what it has received, and what it receives next, without
// waiting for data that could carry the acknowledgment (TCP_QUICKACK, tcp(7)). A server without
// TCP_NODELAY that owes several small replies does not send the second one before the first was
// acknowledged, which may take 40 ms. AckNow has an effect only on Linux. The effect does not last,
// so AckNow must be called after each reply.
func (p Pin) AckNow() {
	raw := p.s.raw
	if raw == nil { // TLS
		if raw = rawTCP(p.s.conn); raw == nil {
			return
		}
	}
	raw.Control(ackNow)
}

// SetLowWater makes the goroutine that reads the connection sleep until n bytes have arrived
// (SO_RCVLOWAT, socket(7)), or until the connection ends. A read that begins earlier returns what
// is there. If n is 1, one byte is enough, as on a new connection. SetLowWater has no effect with
// TLS, whose records have other sizes, and on systems other than Linux.
func (p Pin) SetLowWater(n int) {
	if raw := p.s.raw; raw != nil {
		// An error is ignored: the connection has ended, or each packet wakes the reader.
		raw.Control(func(fd uintptr) { unix.SetsockoptInt(int(fd), unix.SOL_SOCKET, unix.SO_RCVLOWAT, n) })
	}
}

// ackNow is the function of AckNow that gets the descriptor. Sockets that are not TCP have no such option.
func ackNow(fd uintptr) { unix.SetsockoptInt(int(fd), unix.IPPROTO_TCP, unix.TCP_QUICKACK, 1) }
