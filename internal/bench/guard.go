package bench

import (
	"context"
	"net"
	"slices"
	"time"
)

// lookUpLimit bounds the look-up of a name.
const lookUpLimit = 5 * time.Second

// Local reports whether an address is on this machine: a unix socket, a loopback
// address, or a name all of whose addresses are loopback addresses.
func Local(network, address string) bool {
	if network == "unix" {
		return true
	}
	host, _, err := net.SplitHostPort(address)
	if err != nil {
		return false
	}
	if ip := net.ParseIP(host); ip != nil {
		return ip.IsLoopback()
	}
	ctx, cancel := context.WithTimeout(context.Background(), lookUpLimit)
	defer cancel()
	addresses, err := net.DefaultResolver.LookupIP(ctx, "ip", host)
	if err != nil || len(addresses) == 0 {
		return false
	}
	return !slices.ContainsFunc(addresses, func(ip net.IP) bool { return !ip.IsLoopback() })
}
