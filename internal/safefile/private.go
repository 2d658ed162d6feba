package safefile

import (
	"errors"
	"fmt"
	"io/fs"
	"os"
	"path/filepath"
)

// PrivateDir is the directory that a process creates for its own files, with mode 0700, in one
// that belongs to another user or that others can write to.
const PrivateDir = "slipstream-private"

// MakePrivate creates PrivateDir in a directory whose path is dir, unless it exists, and opens it.
// Operations on sub act on that directory, whatever its name refers to by then. Info describes it
// before: if others could write to it, as after a mount by Kubernetes unless fsGroupChangePolicy is
// OnRootMismatch, they can no longer, but what lies there may be theirs.
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

// OpenPrivate opens PrivateDir in a directory whose path is dir, unless it is a link or, without
// anyOwner, belongs to another user. Whether others can write to it is for the caller to check.
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
		err = fmt.Errorf("%s was replaced while it was opened", path)
	case !anyOwner && !Of(info).Mine():
		err = CheckOwnDir(path, info)
	}
	if err != nil {
		return nil, nil, errors.Join(err, sub.Close())
	}
	return sub, info, nil
}
