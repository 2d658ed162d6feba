//go:build unix && !linux

package safefile

import (
	"net"
	"sync"
	"syscall"
)

// umask is of the whole process.
var umask sync.Mutex

// ListenUnix binds a unix socket that only this process's user can connect to from the moment on
// at which it has a name. On these systems, a socket has no mode before it is bound, so files that
// other goroutines create at that moment are private, too.
func ListenUnix(path string) (*net.UnixListener, error) {
	umask.Lock()
	defer umask.Unlock()
	defer syscall.Umask(syscall.Umask(0o177))
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}
