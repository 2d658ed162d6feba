package limit

import (
	"hash/maphash"
	"net/netip"
)

// seed is random for each process, so that clients cannot find addresses that share a
// key.
var seed = maphash.MakeSeed()

// ClientKey returns the key of a client address, never 0. An IPv4 address in an
// IPv6 one is the IPv4 address. Only the first 64 bits of an IPv6 address count:
// networks assign at least that much to one customer, who may use all addresses in it
// (RFC 6177). All invalid addresses count as one client. Keys differ from process to
// process. It does not allocate.
func ClientKey(addr netip.Addr) uint64 {
	addr = addr.Unmap()
	var key uint64
	switch {
	case addr.Is4():
		b := addr.As4()
		key = maphash.Bytes(seed, b[:])
	case addr.Is6():
		b := addr.As16()
		key = maphash.Bytes(seed, b[:8])
	}
	if key == 0 {
		return 1
	}
	return key
}
