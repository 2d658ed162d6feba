//go:build unix

package load

import (
	"fmt"
	"syscall"
)

// NeedDescriptors raises the limit of open descriptors of this process, and of those that it
// starts, to the hard limit. It returns an error if even that is below n.
func NeedDescriptors(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("load: limit of open descriptors: %w", err)
	}
	if limit.Cur < limit.Max {
		raised := limit
		raised.Cur = raised.Max
		if syscall.Setrlimit(syscall.RLIMIT_NOFILE, &raised) == nil { // macOS refuses its own maximum
			limit = raised
		}
	}
	if have := uint64(limit.Cur); have < n { // signed on FreeBSD
		return fmt.Errorf("load: %d descriptors are needed, and this process may open at most %d", n, have)
	}
	return nil
}
