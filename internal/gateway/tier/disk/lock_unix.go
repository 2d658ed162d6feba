//go:build unix && !solaris && !aix

package disk

import (
	"errors"
	"os"
	"syscall"
	"time"

	berrors "go.etcd.io/bbolt/errors"
)

// lock acquires the lock that bbolt uses (flock(2)), which bbolt then holds: it belongs to the
// open file. It waits for lockPatience, and returns bbolt's error if another process keeps the
// lock.
func lock(f *os.File, exclusive bool) error {
	how := syscall.LOCK_SH
	if exclusive {
		how = syscall.LOCK_EX
	}
	for end := time.Now().Add(lockPatience); ; time.Sleep(lockPatience / 10) {
		err := syscall.Flock(int(f.Fd()), how|syscall.LOCK_NB)
		switch {
		case err == nil:
			return nil
		case !errors.Is(err, syscall.EWOULDBLOCK):
			return os.NewSyscallError("flock", err)
		case time.Now().After(end):
			return berrors.ErrTimeout
		}
	}
}
