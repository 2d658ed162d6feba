//go:build unix

package proc

import (
	"fmt"
	"os"
	"syscall"
)

func interrupt(p *os.Process) error { return p.Signal(syscall.SIGTERM) }

// NeedDescriptors raises the descriptor limit of this process and of those it
// starts to the hard limit, and says if even that is below n.
func NeedDescriptors(n uint64) error {
	var limit syscall.Rlimit
	if err := syscall.Getrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
		return fmt.Errorf("descriptor limit: %w", err)
	}
	if limit.Cur < limit.Max {
		limit.Cur = limit.Max
		if err := syscall.Setrlimit(syscall.RLIMIT_NOFILE, &limit); err != nil {
			return fmt.Errorf("raise the descriptor limit to %d: %w", limit.Max, err)
		}
	}
	if limit.Cur < n {
		return fmt.Errorf("descriptor limit is %d, want at least %d", limit.Cur, n)
	}
	return nil
}
