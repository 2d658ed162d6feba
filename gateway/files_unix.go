//go:build unix

package gateway

import (
	"math"
	"syscall"
)

// openFiles returns how many descriptors this process may have, or 0 if that is not known. Go
// has raised the soft limit to the hard one by now.
func openFiles() int {
	var r syscall.Rlimit
	if syscall.Getrlimit(syscall.RLIMIT_NOFILE, &r) != nil {
		return 0
	}
	return int(min(uint64(r.Cur), math.MaxInt32))
}
