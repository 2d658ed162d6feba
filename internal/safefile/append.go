package safefile

import (
	"io/fs"
	"os"
	"syscall"
)

// OpenAppend opens a log file for appending. It creates the file with the given mode if it does not
// exist. A named pipe without a reader is an error: OpenAppend does not wait for one.
func OpenAppend(path string, mode fs.FileMode) (*os.File, error) {
	return os.OpenFile(path, os.O_WRONLY|os.O_APPEND|os.O_CREATE|syscall.O_NONBLOCK, mode)
}

// EndsTorn reports whether a file ends in the middle of a line, as after a power loss or when the
// disk was full. It returns false for a file that cannot be read, such as a pipe.
func EndsTorn(f *os.File) bool {
	info, err := f.Stat()
	if err != nil || !info.Mode().IsRegular() || info.Size() == 0 {
		return false
	}
	r, err := os.Open(f.Name())
	if err != nil {
		return false
	}
	defer r.Close()
	var last [1]byte
	_, err = r.ReadAt(last[:], info.Size()-1)
	return err == nil && last[0] != '\n'
}
