//go:build unix && !linux

package safefile

import (
	"net"
	"sync"
	"syscall"
)

// umask is held while the umask of the whole process is changed.
var umask sync.Mutex

// ListenUnix binds a Unix socket to which only this process's user can connect, from the moment at
// which it has a name. On these systems a socket has no mode before it is bound, so the umask is
// changed. Files that other goroutines create at that moment are private, too.
func ListenUnix(path string) (*net.UnixListener, error) {
	umask.Lock()
	defer umask.Unlock()
	defer syscall.Umask(syscall.Umask(0o177))
	return net.ListenUnix("unix", &net.UnixAddr{Name: path, Net: "unix"})
}
