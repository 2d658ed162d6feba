package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// PrivateDir is the directory, with mode 0700, that a process creates for its own files within a
// directory that belongs to another user or that others can write to.
const PrivateDir = "slipstream-private"

// MakePrivate creates PrivateDir in a directory whose path is dir, unless it exists, and opens it.
// Operations on sub act on that directory, even if its name refers to another one by then. Info
// describes it as it was found. If others could write to it, they no longer can, but files in it
// may be theirs. Kubernetes makes a volume writable in this way when it mounts it, unless
// fsGroupChangePolicy is OnRootMismatch.
func MakePrivate(parent *os.Root, dir string) (sub *os.Root, info fs.FileInfo, err error) {
	path := filepath.Join(dir, PrivateDir)
	if err := parent.Mkdir(PrivateDir, 0o700); err != nil && !errors.Is(err, fs.ErrExist) {
		return nil, nil, fmt.Errorf("make %s: %w; this user must be able to write to the directory", path, err)
	}
	if sub, info, err = OpenPrivate(parent, dir, false); err != nil {
		return nil, nil, err
	}
	if Of(info).OthersWrite() {
		if err := sub.Chmod(".", 0o700); err != nil {
			return nil, nil, errors.Join(err, sub.Close())
		}
	}
	return sub, info, nil
}

// OpenPrivate opens PrivateDir in a directory whose path is dir. It fails if PrivateDir is a link
// or, unless anyOwner is true, belongs to another user. The caller must check whether others can
// write to it.
func OpenPrivate(parent *os.Root, dir string, anyOwner bool) (sub *os.Root, info fs.FileInfo, err error) {
	path := filepath.Join(dir, PrivateDir)
	named, err := parent.Lstat(PrivateDir)
	if err != nil {
		return nil, nil, err
	}
	if !named.IsDir() {
		return nil, nil, CheckOwnDir(path, named)
	}
	if sub, err = parent.OpenRoot(PrivateDir); err != nil {
		return nil, nil, err
	}
	info, err = sub.Stat(".")
	switch {
	case err != nil:
	case !os.SameFile(named, info):
		err = fmt.Errorf("%s was replaced while it was being opened", path)
	case !anyOwner && !Of(info).Mine():
		err = CheckOwnDir(path, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, sub.Close())
	}
	return sub, info, nil
}
