package httpload

import "syscall"

// ipBindAddressNoPort is IP_BIND_ADDRESS_NO_PORT of linux/in.h: the port is
// chosen when connecting, by the whole pair of addresses, and not when binding,
// where every connection of a source address would need a port of its own.
const ipBindAddressNoPort = 24

// manySources says that all of 127.0.0.0/8 are addresses of this machine.
const manySources = true

func bindWithoutPort(_, _ string, raw syscall.RawConn) error {
	var failed error
	err := raw.Control(func(fd uintptr) {
		failed = syscall.SetsockoptInt(int(fd), syscall.IPPROTO_IP, ipBindAddressNoPort, 1)
	})
	if err != nil {
		return err
	}
	return failed
}
