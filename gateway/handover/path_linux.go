package handover

import (
	"context"
	"errors"
	"fmt"
	"io/fs"
	"net"
	"os"
	"path/filepath"
	"time"

	"golang.org/x/sys/unix"

	"github.com/slipstream-go/slipstream/internal/safefile"
)

// Names beside the path. The socket is bound aside, so that nobody finds it before it is
// meant, and renamed over the predecessor's.
const (
	asideSuffix = ".new"
	lockSuffix  = ".lock"

	// maxPath leaves room for the suffix in the 107 bytes of a socket's address (unix(7)).
	maxPath = 107 - len(asideSuffix)
)

// pause is how often a process that waits for its turn looks again.
const pause = 20 * time.Millisecond

// checkPath refuses a path at which others could put a socket of theirs.
func checkPath(path string) error {
	if len(path) > maxPath {
		return fmt.Errorf("a path of %d bytes; expected at most %d", len(path), maxPath)
	}
	folder := filepath.Dir(path)
	about, err := os.Stat(folder)
	switch {
	case err != nil:
		return err
	case !about.IsDir():
		return fmt.Errorf("%s is no folder", folder)
	}
	// Who can write to the folder could put another socket at the path, or keep every process
	// from starting there.
	if err := safefile.CheckDir(folder, about); err != nil {
		return fmt.Errorf("%w, or name a folder of the gateway's own, such as /run/slipstream", err)
	}
	about, err = os.Lstat(path)
	if err == nil && about.Mode().Type() != fs.ModeSocket {
		return fmt.Errorf("%s exists and is not a socket; expected an unused name", path)
	}
	if err != nil && !errors.Is(err, fs.ErrNotExist) {
		return err
	}
	return nil
}

// awaitLock locks the file beside the path, and waits while another process has it.
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

// sleep returns the context's error, or ErrBusy if that was its deadline, when it ends first.
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

// listenAside binds the socket that will be renamed to path. Only who holds the lock may:
// what lies at its name was left by a process that died.
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

// inodeAt returns which file lies at path, 0 if none.
func inodeAt(path string) uint64 {
	var about unix.Stat_t
	if unix.Lstat(path, &about) != nil {
		return 0
	}
	return about.Ino
}
