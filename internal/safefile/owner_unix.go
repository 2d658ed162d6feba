//go:build unix

package safefile

import (
	"io/fs"
	"os"
	"syscall"
)

func about(info fs.FileInfo) About {
	stat, ok := info.Sys().(*syscall.Stat_t)
	if !ok {
		return About{}
	}
	return About{UID: int(stat.Uid), GID: int(stat.Gid), Perm: info.Mode().Perm(), known: true}
}

// openNow opens a file. If that is a named pipe, it does not wait for a writer.
func openNow(path string) (*os.File, error) {
	return os.OpenFile(path, os.O_RDONLY|syscall.O_NONBLOCK, 0)
}
