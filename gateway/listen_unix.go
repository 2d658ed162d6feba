//go:build unix

package gateway

import (
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"syscall"

	"github.com/slipstream-go/slipstream/gateway/config"
	"github.com/slipstream-go/slipstream/internal/safefile"
)

// listenUnix binds a unix socket. A socket that a process left behind is replaced. A socket at
// which a process listens is not, and neither is any other file at the path. No other user may be
// able to write to the directory: such a user could put another socket at the path, and clients would
// send their credentials to it.
func listenUnix(path string, l config.Listener) (net.Listener, error) {
	uid, gid, err := safefile.LookUpOwner(l.Owner)
	if err != nil {
		return nil, fmt.Errorf("owner of %s: %w", path, err)
	}
	folder, err := os.OpenRoot(filepath.Dir(path))
	if err != nil {
		return nil, fmt.Errorf("directory of %s: %w", path, err)
	}
	defer folder.Close()
	about, err := folder.Stat(".")
	if err == nil {
		err = safefile.CheckDir(filepath.Dir(path), about)
	}
	if err != nil {
		return nil, fmt.Errorf("directory of %s: %w", path, err)
	}
	if err := removeStale(path); err != nil {
		return nil, err
	}
	// Only this process's user may connect until owner and mode are those of the configuration.
	all, err := safefile.ListenUnix(path)
	if err != nil {
		return nil, err
	}
	if err := give(folder, filepath.Base(path), uid, gid, l.Mode); err != nil {
		return nil, errors.Join(fmt.Errorf("owner and mode of %s: %w", path, err), all.Close())
	}
	return all, nil
}

// give sets owner and mode of the socket that was bound in the directory. A link there is refused, and
// one that appears later cannot lead out of the directory.
func give(folder *os.Root, name string, uid, gid int, mode fs.FileMode) error {
	about, err := folder.Lstat(name)
	switch {
	case err != nil:
		return err
	case about.Mode().Type() != fs.ModeSocket || !safefile.Of(about).Mine():
		return errors.New("the socket was replaced after it was bound")
	}
	if uid >= 0 || gid >= 0 {
		if err := folder.Lchown(name, uid, gid); err != nil {
			return err
		}
	}
	return folder.Chmod(name, mode)
}

// removeStale removes a socket at which no process listens.
func removeStale(path string) error {
	info, err := os.Lstat(path)
	if errors.Is(err, fs.ErrNotExist) {
		return nil
	}
	if err != nil {
		return err
	}
	if info.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket; expected a free path", path)
	}
	c, err := net.Dial("unix", path)
	if err == nil {
		_ = c.Close() // nothing was sent
		return fmt.Errorf("%s: another process listens there", path)
	}
	if !errors.Is(err, syscall.ECONNREFUSED) {
		return fmt.Errorf("%s exists, and whether a process listens there is unknown: %w", path, err)
	}
	return os.Remove(path)
}
