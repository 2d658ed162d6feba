package disk

import (
	"errors"
	"fmt"
	"io/fs"
	"log/slog"
	"os"
	"path/filepath"

	"github.com/slipstream-go/slipstream/internal/safefile"
)

// PrivateDir is the directory that the tier creates for its file, with mode 0700, inside one that
// belongs to another user or that others can write to. Otherwise a user that can write to the
// directory could put a file of documents there, which would be served to everyone.
const PrivateDir = safefile.PrivateDir

// place is where the file is.
type place struct {
	dir     string // that the configuration names
	private bool   // the file is in PrivateDir there
	// anyOwner accepts directories and files of all users: for root, which inspects the file of
	// a gateway that runs as another user.
	anyOwner bool
}

// path returns the directory of the file.
func (p place) path() string {
	if p.private {
		return filepath.Join(p.dir, PrivateDir)
	}
	return p.dir
}

// file returns the path of the file.
func (p place) file() string { return filepath.Join(p.path(), FileName) }

// alone reports whether no other user can write to the directory.
func (p place) alone(info fs.FileInfo) bool {
	about := safefile.Of(info)
	return (about.Mine() || p.anyOwner) && !about.OthersWrite()
}

// makePlace returns the place for the file, and creates missing directories.
func makePlace(dir string, log *slog.Logger) (p place, err error) {
	if err := os.MkdirAll(dir, 0o700); err != nil {
		return p, fmt.Errorf("disk tier: %w; this user must be able to write to the directory", err)
	}
	p, root, err := findPlace(dir, false)
	if err != nil {
		return p, err
	}
	defer root.Close()
	if !p.private {
		return p, nil
	}
	sub, info, err := safefile.MakePrivate(root, dir)
	if err != nil {
		return p, fmt.Errorf("disk tier: %w", err)
	}
	defer sub.Close()
	// It is this user's own, but its mode was changed. Others could have written to the file
	// meanwhile.
	if safefile.Of(info).OthersWrite() {
		log.Warn("others could write to the directory of the disk tier; its file is recreated", "directory", p.path(), "mode", info.Mode().Perm().String())
		if err := sub.Remove(FileName); err != nil && !errors.Is(err, fs.ErrNotExist) {
			return p, fmt.Errorf("disk tier: %w", err)
		}
	}
	return p, nil
}

// findPlace returns where the file of dir is, and dir, which the caller closes.
func findPlace(dir string, anyOwner bool) (p place, root *os.Root, err error) {
	p = place{dir: dir, anyOwner: anyOwner}
	if root, err = os.OpenRoot(dir); err != nil {
		return p, nil, fmt.Errorf("disk tier: %w", err)
	}
	info, err := root.Stat(".")
	if err != nil {
		return p, nil, errors.Join(fmt.Errorf("disk tier: %w", err), root.Close())
	}
	p.private = !(place{}).alone(info)
	if p.private && p.alone(info) { // root: is it the directory of a gateway that runs as its owner?
		_, err := root.Lstat(filepath.Join(PrivateDir, FileName))
		p.private = err == nil
	}
	return p, root, nil
}

// open opens the directory of the file, if it is safe. Operations on the result happen in
// that directory, whatever its name leads to by then.
func (p place) open() (*os.Root, error) {
	root, err := os.OpenRoot(p.dir)
	if err != nil {
		return nil, fmt.Errorf("disk tier: %w", err)
	}
	info, err := root.Stat(".")
	if p.private && err == nil {
		parent := root
		defer parent.Close()
		if root, info, err = safefile.OpenPrivate(parent, p.dir, p.anyOwner); err != nil {
			return nil, fmt.Errorf("disk tier: %w", err)
		}
	}
	if err == nil && !p.alone(info) {
		err = safefile.CheckOwnDir(p.path(), info)
	}
	if err != nil {
		return nil, errors.Join(fmt.Errorf("disk tier: %w", err), root.Close())
	}
	return root, nil
}

// report logs the place of the file if it is not the configured one, and unused files there.
func (p place) report(log *slog.Logger) {
	if p.private {
		log.Warn("the directory of the disk tier belongs to another user, or others can write to it: the file is in a private directory there", "directory", p.dir, "file", p.file())
		if unused := filepath.Join(p.dir, FileName); exists(unused) {
			log.Warn("a file of documents that others could write to is not used; it can be removed", "file", unused)
		}
		return
	}
	if unused := filepath.Join(p.dir, PrivateDir, FileName); exists(unused) {
		log.Info("only this user can write to the directory of the disk tier now; the file in the private directory is not used and can be removed", "file", unused)
	}
}

func exists(path string) bool {
	_, err := os.Lstat(path)
	return err == nil
}
