package httpload

import "syscall"

// ipBindAddressNoPort is IP_BIND_ADDRESS_NO_PORT of linux/in.h: the port is chosen when connecting,
// depending on both addresses, and not when binding, where every connection from a source address
// would need a different port.
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
