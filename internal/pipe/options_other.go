//go:build !linux

package pipe

import (
	"net"
	"time"
)

// setOptions does nothing: only Linux has TCP_USER_TIMEOUT.
func setOptions(net.Conn, time.Duration) {}

// hangUpEvents is empty: only Linux reports that the other side has closed its half.
const hangUpEvents = 0

// AckNow makes the kernel acknowledge what it has received without waiting for data that could carry the
// acknowledgment. It has an effect on Linux only.
func (Pin) AckNow() {}

// SetLowWater makes the goroutine that reads the connection sleep until some bytes have arrived. It has an effect on Linux
// only.
func (Pin) SetLowWater(int) {}
