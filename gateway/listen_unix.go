//go:build unix

package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"sync"
	"syscall"

	"github.com/slipstream-go/slipstream/gateway/config"
)

// umask is of the whole process.
var umask sync.Mutex

// listenUnix binds a unix socket. A file that a process left behind is replaced; one that a
// process listens at is not, and neither is anything else at the path.
func listenUnix(path string, l config.Listener) (net.Listener, error) {
	uid, gid, err := config.LookUpOwner(l.Owner)
	if err != nil {
		return nil, fmt.Errorf("owner of %s: %w", path, err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// Only this process may connect until owner and mode are those of the configuration.
	umask.Lock()
	before := syscall.Umask(0o177)
	all, err := net.Listen("unix", path)
	syscall.Umask(before)
	umask.Unlock()
	if err != nil {
		return nil, err
	}
	if uid >= 0 || gid >= 0 {
		err = os.Lchown(path, uid, gid)
	}
	if err == nil {
		err = os.Chmod(path, l.Mode)
	}
	if err != nil {
		return nil, errors.Join(err, all.Close())
	}
	return all, nil
}

// removeStale removes a socket that nobody listens at.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s is there and no socket; expected a path that is free", path)
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close() // nothing was said
		return fmt.Errorf("%s: another process listens there", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%s is there and cannot be asked whether a process listens: %w", path, err)
	}
	return os.Remove(path)
}
