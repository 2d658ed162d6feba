package bench

import (
	"context"
	"errors"
	"fmt"
	"net"
	"slices"
	"syscall"
	"time"
)

// lookUpLimit bounds the time of a name lookup.
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

// ErrNotLocal is the error with which [OnlyLocal] refuses a connection.
var ErrNotLocal = errors.New("not on this machine; expected --yes")

// OnlyLocal is a Control function for [net.Dialer] that permits connections only to this machine.
// It is called with the address to which a name resolves when the connection is opened, and for
// each node that a cluster announces.
func OnlyLocal(network, address string, _ syscall.RawConn) error {
	if network == "unix" {
		return nil
	}
	host, _, err := net.SplitHostPort(address)
	if ip := net.ParseIP(host); err != nil || !ip.IsLoopback() {
		return fmt.Errorf("%s: %w", address, ErrNotLocal)
	}
	return nil
}
