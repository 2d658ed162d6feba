//go:build unix

package gateway

import (
	"errors"
	"io/fs"
	"os"
	"path/filepath"
	"strings"
	"syscall"
	"testing"

	"github.com/slipstream-go/slipstream/gateway/config"
)

// TestFolderOfASocket: no socket is bound in a directory that others can write to; in other directories
// the socket has exactly the mode of the configuration, regardless of the process's umask.
func TestFolderOfASocket(t *testing.T) {
	defer syscall.Umask(syscall.Umask(0o077))
	for _, c := range []struct {
		folder fs.FileMode
		want   string // if "", it is bound
	}{
		{0o755, ""},
		{0o700, ""},
		{0o775, "chmod go-w"},
		{0o775 | fs.ModeSetgid, "chmod go-w"},
		{0o757, "that no other user can write to"},
		{0o777 | fs.ModeSticky, "that no other user can write to"},
	} {
		folder := filepath.Join(t.TempDir(), "run")
		if err := errors.Join(os.Mkdir(folder, 0o700), os.Chmod(folder, c.folder)); err != nil {
			t.Fatal(err)
		}
		path := filepath.Join(folder, "http.sock")
		l, err := listenUnix(path, config.Listener{Mode: 0o666})
		if c.want != "" {
			if err == nil || !strings.Contains(err.Error(), c.want) || !strings.Contains(err.Error(), path) {
				t.Errorf("%v: got %v, want an error with %q", c.folder, err, c.want)
			}
			if _, err := os.Lstat(path); !errors.Is(err, fs.ErrNotExist) {
				t.Errorf("%v: something is at the path: %v", c.folder, err)
			}
			continue
		}
		if err != nil {
			t.Errorf("%v: %v", c.folder, err)
			continue
		}
		if info, err := os.Lstat(path); err != nil || info.Mode() != fs.ModeSocket|0o666 {
			t.Errorf("%v: the socket: %v, %v, want the mode 0666", c.folder, info, err)
		}
		l.Close()
	}
}

// TestSocketThatWasReplaced: a file that replaces a socket after it was bound gets neither its owner
// nor its mode.
func TestSocketThatWasReplaced(t *testing.T) {
	dir := t.TempDir()
	precious := filepath.Join(dir, "precious")
	folder, err := os.OpenRoot(dir)
	if err == nil {
		defer folder.Close()
		err = errors.Join(os.WriteFile(precious, nil, 0o600), os.Symlink("precious", filepath.Join(dir, "link")))
	}
	if err != nil {
		t.Fatal(err)
	}
	for _, name := range []string{"link", "precious", "none"} {
		if err := give(folder, name, os.Geteuid(), os.Getegid(), 0o666); err == nil {
			t.Errorf("%s: got no error", name)
		}
		if info, err := os.Stat(precious); err != nil || info.Mode().Perm() != 0o600 {
			t.Errorf("%s: the file has %v, %v, want the mode 0600", name, info.Mode(), err)
		}
	}
}
