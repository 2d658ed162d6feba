//go:build unix

package main

import (
	"io/fs"
	"os"
	"syscall"
)

// keepOwner gives a new file the owner of the one that it replaces.
func keepOwner(next *os.File, old fs.FileInfo) error {
	is, err := next.Stat()
	if err != nil {
		return err
	}
	was, now := old.Sys().(*syscall.Stat_t), is.Sys().(*syscall.Stat_t)
	if was.Uid == now.Uid && was.Gid == now.Gid {
		return nil
	}
	return next.Chown(int(was.Uid), int(was.Gid))
}
