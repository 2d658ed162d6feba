package handover

import (
	"net"
	"strings"
)

// Fits reports whether a socket that is bound to addr fits a configured address in the form of
// [Sockets.Take].
func Fits(addr net.Addr, configured string) bool {
	if path, ok := strings.CutPrefix(configured, "unix:"); ok {
		return addr.Network() == "unix" && addr.String() == path
	}
	bound, ok := addr.(*net.TCPAddr)
	if !ok {
		return false
	}
	want, err := net.ResolveTCPAddr("tcp", configured)
	if err != nil {
		return false
	}
	if want.Port != 0 && want.Port != bound.Port {
		return false
	}
	// Package net binds 0.0.0.0, [::] and no host at all to the same address.
	if len(want.IP) == 0 || want.IP.IsUnspecified() {
		return len(bound.IP) == 0 || bound.IP.IsUnspecified()
	}
	return want.IP.Equal(bound.IP) && want.Zone == bound.Zone
}
