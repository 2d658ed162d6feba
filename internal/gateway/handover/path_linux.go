package handover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipstream-go/slipstream/internal/safefile"
)

// Names next to the path. The socket is bound under another name, so that no process finds
// it too early, and renamed over the predecessor's.
const (
	asideSuffix = ".new"
	lockSuffix  = ".lock"

	// maxPath leaves room for the suffix in the 107 bytes of a socket's address (unix(7)).
	maxPath = 107 - len(asideSuffix)
)

// pause is the polling interval of a process that waits for its turn.
const pause = 20 * time.Millisecond

// findPlace returns the path at which processes meet: path itself, or, if other users could put their
// own socket there, the same name in a private subdirectory, which findPlace creates. It returns the
// same path in all processes of the user.
func findPlace(path string, log *slog.Logger) (string, error) {
	dir := filepath.Dir(path)
	if about, err := os.Stat(dir); err != nil {
		return "", err
	} else if !about.IsDir() {
		return "", fmt.Errorf("%s is not a directory", dir)
	}
	root, err := os.OpenRoot(dir)
	if err != nil {
		return "", err
	}
	defer root.Close()
	about, err := root.Stat(".")
	if err != nil {
		return "", err
	}
	if safefile.CheckDir(dir, about) != nil {
		if path, err = findPrivate(root, path, log); err != nil {
			return "", fmt.Errorf("%w; or configure a dedicated directory, such as /run/slipstream", err)
		}
	}
	if len(path) > maxPath {
		return "", fmt.Errorf("a path of %d bytes, %s; expected at most %d", len(path), path, maxPath)
	}
	about, err = os.Lstat(path)
	if err == nil && about.Mode().Type() != fs.ModeSocket {
		return "", fmt.Errorf("%s exists and is not a socket; expected an unused name", path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return "", err
	}
	return path, nil
}

// findPrivate returns the path in the private subdirectory. A user that can write to the directory
// can still replace that subdirectory: this keeps processes from meeting, but reveals no sockets,
// because processes of other users are refused ([mayTalk]).
func findPrivate(folder *os.Root, path string, log *slog.Logger) (string, error) {
	dir, name := filepath.Split(path)
	dir = filepath.Clean(dir)
	private, about, err := safefile.MakePrivate(folder, dir)
	if err != nil {
		return "", err
	}
	defer private.Close()
	path = filepath.Join(dir, safefile.PrivateDir, name)
	log.Warn("the directory of the handover belongs to another user, or others can write to it: processes meet in a private directory there", "folder", dir, "path", path)
	if !safefile.Of(about).OthersWrite() {
		return path, nil
	}
	for _, name := range []string{name, name + asideSuffix, name + lockSuffix} {
		if about, err := private.Lstat(name); err == nil && !safefile.Of(about).Mine() {
			log.Warn("others could write to the directory of the handover; files of other users there are removed", "name", name)
			if err := private.RemoveAll(name); err != nil {
				return "", err
			}
		}
	}
	return path, nil
}

// awaitLock locks the file next to the path, and waits while another process has it.
func awaitLock(ctx context.Context, path string) (*os.File, error) {
	f, err := openLock(path)
	if err != nil {
		return nil, err
	}
	for {
		err := tryLock(f)
		if err == nil {
			return f, nil
		}
		if !errors.Is(err, unix.EWOULDBLOCK) {
			_ = f.Close() // nothing was written
			return nil, fmt.Errorf("lock %s: %w", f.Name(), err)
		}
		if err := sleep(ctx, pause); err != nil {
			_ = f.Close() // nothing was written
			return nil, err
		}
	}
}

func openLock(path string) (*os.File, error) {
	return os.OpenFile(path+lockSuffix, os.O_RDWR|os.O_CREATE|unix.O_NOFOLLOW, 0o600)
}

func tryLock(f *os.File) error {
	for {
		if err := unix.Flock(int(f.Fd()), unix.LOCK_EX|unix.LOCK_NB); !errors.Is(err, unix.EINTR) {
			return err
		}
	}
}

// sleep returns the context's error, or ErrBusy if that was its deadline, if the context ends
// first.
func sleep(ctx context.Context, d time.Duration) error {
	timer := time.NewTimer(d)
	defer timer.Stop()
	select {
	case <-timer.C:
		return nil
	case <-ctx.Done():
		if errors.Is(ctx.Err(), context.DeadlineExceeded) {
			return ErrBusy
		}
		return context.Cause(ctx)
	}
}

// listenAside binds the socket that will be renamed to path. Only the holder of the lock may
// call it: an existing file of that name was left by a process that died.
func listenAside(path string) (*net.UnixListener, error) {
	aside := path + asideSuffix
	if err := os.Remove(aside); err != nil && !errors.Is(err, fs.ErrNotExist) {
		return nil, err
	}
	l, err := safefile.ListenUnix(aside)
	if err != nil {
		return nil, err
	}
	l.SetUnlinkOnClose(false) // the name changes
	return l, nil
}

// inodeAt returns the inode of the file at path, or 0 if there is none.
func inodeAt(path string) uint64 {
	var about unix.Stat_t
	if unix.Lstat(path, &about) != nil {
		return 0
	}
	return about.Ino
}
